//! A medium that fails, tears or loses its n-th write: acknowledged commits are present, or the damage is reported.

use tepui_fsm::Rng;

use super::*;

const IDENTITY: u64 = 7;

/// The durable bytes, and the write at which the medium fails.
#[derive(Clone, Debug)]
struct Flaky {
    bytes: Vec<u8>,
    writes_left: usize,
}

impl Flaky {
    fn sized(data: u64) -> Self {
        Self { bytes: vec![0; (DATA_AT + data) as usize], writes_left: usize::MAX }
    }
}

impl Medium for Flaky {
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let at = at as usize;
        let found = self.bytes.get(at..at + into.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(found);
        Ok(())
    }

    /// The last write is torn: half of it arrives.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let (at, torn) = (at as usize, self.writes_left == 0);
        let arrives = if torn { &bytes[..bytes.len() / 2] } else { bytes };
        self.bytes[at..at + arrives.len()].copy_from_slice(arrives);
        match torn {
            true => Err(io::ErrorKind::BrokenPipe.into()),
            false => {
                self.writes_left -= 1;
                Ok(())
            }
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }
}

fn batch(round: u8) -> Vec<Write> {
    let mut writes = vec![Write::put("round", [round]), Write::put(format!("key/{round}"), vec![round; 50])];
    if round > 0 {
        writes.push(Write::delete(format!("key/{}", round - 1)));
    }
    writes
}

fn apply(values: &mut BTreeMap<String, Option<Vec<u8>>>, writes: &[Write]) {
    values.extend(writes.iter().map(|write| (write.key.clone(), write.value.clone())));
}

#[test]
fn reserve_commits_survive_reopening_until_cleared() {
    let mut reserve = Reserve::load(Flaky::sized(4096), IDENTITY).unwrap();
    let mut expected = BTreeMap::new();
    for round in 0..5 {
        reserve.append(&batch(round)).unwrap();
        apply(&mut expected, &batch(round));
    }
    let mut reopened = Reserve::load(reserve.medium.clone(), IDENTITY).unwrap();
    assert_eq!(*reopened.pending(), expected);
    reopened.clear().unwrap();
    assert!(Reserve::load(reopened.medium, IDENTITY).unwrap().pending().is_empty());
}

#[test]
fn exhausted_reserve_rejects_commits_that_do_not_fit() {
    let mut reserve = Reserve::load(Flaky::sized(300), IDENTITY).unwrap();
    reserve.append(&batch(0)).unwrap();
    let used = reserve.used();
    let err = reserve.append(&[Write::put("large", vec![1; 300])]).unwrap_err();
    assert_eq!((err.kind(), reserve.used()), (io::ErrorKind::StorageFull, used));
    reserve.append(&batch(1)).unwrap();
    assert_eq!(Reserve::load(reserve.medium, IDENTITY).unwrap().pending()["round"], Some(vec![1]));
}

/// Appends and clears until the medium fails; the states that a crash may leave, and the medium.
fn play(mut reserve: Reserve<Flaky>) -> (Vec<BTreeMap<String, Option<Vec<u8>>>>, Flaky) {
    let mut current = BTreeMap::new();
    for round in 0..8 {
        if round == 4 && reserve.clear().is_err() {
            return (vec![current, BTreeMap::new()], reserve.medium);
        } else if round == 4 {
            current.clear();
        }
        let mut next = current.clone();
        apply(&mut next, &batch(round));
        if reserve.append(&batch(round)).is_err() {
            return (vec![current, next], reserve.medium);
        }
        current = next;
    }
    (vec![current], reserve.medium)
}

/// Power failure at every single write: all acknowledged commits are present afterwards.
#[test]
fn acknowledged_commits_survive_a_crash_at_any_write() {
    for crash in 2..30 {
        let medium = Flaky { writes_left: crash, ..Flaky::sized(4096) };
        let (allowed, mut left) = play(Reserve::load(medium, IDENTITY).unwrap());
        left.writes_left = usize::MAX;
        let found = Reserve::load(left, IDENTITY).unwrap_or_else(|err| panic!("crash {crash}: {err:?}"));
        assert!(allowed.contains(found.pending()), "crash {crash}: {:?}", found.pending());
    }
}

#[test]
fn flipped_bit_is_detected_or_harmless() {
    let mut reserve = Reserve::load(Flaky::sized(4096), IDENTITY).unwrap();
    (0..10).for_each(|round| reserve.append(&batch(round)).unwrap());
    let expected = reserve.pending().clone();
    let used = (DATA_AT + reserve.used()) as usize;
    let heads = (0..HEAD_BYTES).chain(PAGE_BYTES as usize..PAGE_BYTES as usize + HEAD_BYTES);
    let mut rng = Rng::seeded(5);
    let mut reported = 0;
    for at in heads.chain(DATA_AT as usize..used) {
        let mut damaged = reserve.medium.clone();
        damaged.bytes[at] ^= 1 << rng.below(8);
        match Reserve::load(damaged, IDENTITY) {
            Ok(found) => assert_eq!(*found.pending(), expected, "byte {at}"),
            Err(ReserveFault::Damaged(_)) => reported += 1,
            Err(other) => panic!("byte {at}: {other:?}"),
        }
    }
    assert_eq!(
        reported,
        used - DATA_AT as usize,
        "every byte of every commit counts, one of two heads is enough"
    );
}

#[test]
fn reserve_of_another_database_is_rejected_unless_empty() {
    let mut reserve = Reserve::load(Flaky::sized(4096), IDENTITY).unwrap();
    let empty = reserve.medium.clone();
    assert!(Reserve::load(empty, IDENTITY + 1).unwrap().is_empty());
    reserve.append(&batch(0)).unwrap();
    let fault = Reserve::load(reserve.medium, IDENTITY + 1).unwrap_err();
    assert!(matches!(&fault, ReserveFault::Damaged(why) if why.contains("another database")), "{fault:?}");
}
