//! The tables and the JSON form of every message: the traits of this crate on the generated types.
//!
//! The generator writes one invocation of `message_forms` or `enum_forms` per type; the macros are defined here.

use alloc::vec::Vec;

use buffa::{DecodeError, DecodeOptions, Enumeration as _, Message as _};

use crate::json::{FromJson, JsonError, JsonReader, JsonWriter, ToJson, fields};
use crate::shape::{Field, Kind, Shape};
use crate::wire::Wire;

macro_rules! message_forms {
    ($message:ty, $shape:ident, |$self:ident, $w:ident, $place:ident, $reader:ident| $write:block, $read:expr) => {
        impl ToJson for $message {
            fn write_json(&self, $w: &mut JsonWriter) {
                let $self = self;
                $w.begin_object();
                $write
                $w.end_object();
            }
        }

        impl FromJson for $message {
            fn shape(&self) -> &'static Shape {
                &$shape
            }

            fn read_field(&mut self, $place: usize, $reader: &mut JsonReader<'_>) -> Result<bool, JsonError> {
                let $self = self;
                $read
            }
        }

        impl fields::FieldValue for $message {
            fn read(reader: &mut JsonReader<'_>) -> Result<Option<Self>, JsonError> {
                let mut message = Self::default();
                fields::read_message(&mut message, reader)?;
                Ok(Some(message))
            }
        }

        impl Wire for $message {
            fn encode_wire(&self) -> Vec<u8> {
                self.encode_to_vec()
            }

            fn decode_wire(bytes: &[u8], options: &DecodeOptions) -> Result<Self, DecodeError> {
                options.decode_from_slice(bytes)
            }
        }
    };
}

macro_rules! enum_forms {
    ($enum:ty) => {
        impl ToJson for $enum {
            fn write_json(&self, w: &mut JsonWriter) {
                w.plain_name(self.proto_name());
            }
        }

        impl fields::FieldValue for $enum {
            fn read(reader: &mut JsonReader<'_>) -> Result<Option<Self>, JsonError> {
                fields::read_enum(reader)
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/forms.rs"));
