//! The shape of a message: its fields with name, number, label and kind, as static tables.
//!
//! Generated from the `.proto` files; read by the JSON reader (names, required fields) and by the check of binary input.
//! Never here: values.

/// A message type. `fields` are in the order of their declaration, which is the order of the JSON form.
#[derive(Debug)]
pub struct Shape {
    /// The full protobuf name, for example `mesos.v1.TaskInfo`.
    pub name: &'static str,
    /// At most [`FIELDS_MAX`].
    pub fields: &'static [Field],
    /// A bit for each required field, by its place in `fields`.
    pub required: u128,
}

/// The generator refuses a message with more fields: sets of fields are bits of one word.
pub const FIELDS_MAX: usize = u128::BITS as usize;

/// One field of a message.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub number: u32,
    pub repeated: bool,
    pub kind: Kind,
}

/// What a field holds, as far as the wire cares. A map is a repeated message with `key` and `value`.
#[derive(Debug)]
pub enum Kind {
    Varint,
    /// With the answer to "is this a declared value?".
    Enum(fn(i32) -> bool),
    Fixed32,
    Fixed64,
    Double,
    /// A string or bytes.
    Bytes,
    Message(&'static Shape),
}

impl Shape {
    /// The index of a field by name. `hint` is tried first: input is mostly in the order of declaration.
    pub(crate) fn by_name(&self, name: &str, hint: usize) -> Option<usize> {
        self.find(hint, |field| field.name == name)
    }

    /// The index of a field by number, see [`Shape::by_name`].
    pub(crate) fn by_number(&self, number: u32, hint: usize) -> Option<usize> {
        self.find(hint, |field| field.number == number)
    }

    fn find(&self, hint: usize, is_it: impl Fn(&Field) -> bool) -> Option<usize> {
        let hint = hint.min(self.fields.len());
        let (before, after) = self.fields.split_at(hint);
        match after.iter().position(&is_it) {
            Some(place) => Some(hint + place),
            None => before.iter().position(is_it),
        }
    }

    /// The fields whose bit is set, in order of declaration.
    pub(crate) fn named(&self, bits: u128) -> impl Iterator<Item = &'static Field> {
        let fields = self.fields;
        (0..fields.len()).filter(move |place| bits & (1 << place) != 0).map(move |place| &fields[place])
    }
}
