//! What a store keeps, what it drops, and what it makes of a disk that was changed.

use super::*;
use restp_rivals::itp::manifest::Hash;

fn chunk(number: u32) -> (Digest, Bytes) {
    let bytes: Vec<u8> = (0..1000u32)
        .map(|at| (at ^ number.wrapping_mul(2_654_435_761)) as u8)
        .collect();
    let bytes = Bytes::from([&number.to_be_bytes()[..], &bytes].concat());
    (digest(&bytes), bytes)
}

fn fill(store: &mut DiskStore, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let (name, bytes) = chunk(number);
        store.put(&name, &bytes);
    }
}

fn get(store: &mut DiskStore, name: &Digest, in_doubt: bool) -> Option<Bytes> {
    match store.get(name, in_doubt, true) {
        Poll::Ready(found) => found,
        Poll::Pending => panic!("it waits"),
    }
}

fn has(store: &mut DiskStore, number: u32) -> bool {
    let (name, bytes) = chunk(number);
    let found = get(store, &name, false);
    assert!(found.is_none() || found == Some(bytes), "what is there is right");
    get(store, &name, false).is_some()
}

#[test]
fn what_is_put_is_there_before_and_after_it_is_written_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = DiskStore::open(folder.path(), 100 << 20).unwrap();
    fill(&mut store, 0..2500);
    assert!((0..2500).all(|number| has(&mut store, number)) && !has(&mut store, 2500));
    assert!(DiskStore::open(folder.path(), 1).is_err(), "it is in use");
    drop(store);
    let mut store = DiskStore::open(folder.path(), 100 << 20).unwrap();
    assert!((0..2500).all(|number| has(&mut store, number)));
    assert_eq!(store.stats().bytes.load(Ordering::Relaxed), 2500 * 1004);
}

#[test]
fn beyond_its_size_what_was_used_least_recently_goes_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = DiskStore::open(folder.path(), 4 << 20).unwrap();
    fill(&mut store, 0..3900);
    assert!(has(&mut store, 0), "the first pack is used again");
    fill(&mut store, 3900..5200);
    assert!(store.weight() <= 4 << 20, "{}", store.weight());
    assert!(has(&mut store, 0) && !has(&mut store, 1100) && has(&mut store, 5199));
    drop(store);
    let mut store = DiskStore::open(folder.path(), 2 << 20).unwrap();
    assert!(store.weight() <= 2 << 20);
    assert!(has(&mut store, 5199));
    let on_disk: u64 = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(on_disk < 3 << 20, "{on_disk}");
}

/// Manifests of long chunks name them by BLAKE3.
#[test]
fn a_chunk_is_there_after_a_restart_by_whichever_hash_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = Bytes::from(vec![5; 32_000]);
    let names = [Hash::Sha256, Hash::Blake3].map(|hash| hash.digest(&bytes));
    let mut store = DiskStore::open(folder.path(), 100 << 20).unwrap();
    names.iter().for_each(|name| store.put(name, &bytes));
    drop(store);
    let mut store = DiskStore::open(folder.path(), 100 << 20).unwrap();
    for name in &names {
        assert_eq!(get(&mut store, name, true).as_ref(), Some(&bytes));
    }
}

/// Of chunks of eight bytes there would be half a million.
#[test]
fn short_chunks_take_the_room_that_their_lists_and_memory_need() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = DiskStore::open(folder.path(), 4 << 20).unwrap();
    for number in 0..30_000u64 {
        let bytes = Bytes::copy_from_slice(&number.to_be_bytes());
        store.put(&digest(&bytes), &bytes);
    }
    let most = (4 << 20) / pack::LEAST_WEIGHT as usize;
    let keys: usize = store.packs.values().map(|pack| pack.keys.len()).sum();
    assert!(
        store.places.len() <= most && keys <= most,
        "{} {keys}",
        store.places.len()
    );
    drop(store);
    let store = DiskStore::open(folder.path(), 4 << 20).unwrap();
    assert!((most * 3 / 4..=most).contains(&store.places.len()));
}

/// Each is two open files.
#[test]
fn a_large_store_is_of_few_packs() {
    for limit in [1 << 20, 10 << 30, 200 << 30] {
        let folder = tempfile::tempdir().unwrap();
        let store = DiskStore::open(folder.path(), limit).unwrap();
        assert!(limit / store.pack_bytes <= PACKS, "{limit}");
        assert!(store.pack_bytes + u64::from(MOST_CHUNK) <= u64::from(u32::MAX));
    }
}

#[test]
fn roots_take_a_share_of_the_store_and_the_oldest_go() {
    let folder = tempfile::tempdir().unwrap();
    let store = DiskStore::open(folder.path(), 4 << 20).unwrap();
    let wanted = |number| Wanted {
        root: [number; 32],
        publisher: restp_rivals::itp::trust::PublisherKey([1; 32]),
    };
    let body = Bytes::from(vec![7; 60_000]);
    for number in 0..10 {
        store.put_root(&wanted(number), &body);
        let written = File::open(store.root_path(&wanted(number))).unwrap();
        let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(u64::from(number));
        written.set_modified(at).unwrap();
    }
    let kept: Vec<u8> = (0..10)
        .filter(|number| store.root(&wanted(*number)).is_some())
        .collect();
    assert_eq!(kept, [6, 7, 8, 9]);
}

#[test]
fn what_was_damaged_on_disk_is_noticed_dropped_and_taken_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = DiskStore::open(folder.path(), 100 << 20).unwrap();
    fill(&mut store, 0..10);
    drop(store);
    let pack = folder.path().join("00000000.pack");
    let mut bytes = fs::read(&pack).unwrap();
    bytes[3 * 1004 + 500] ^= 1;
    fs::write(&pack, bytes).unwrap();
    let mut store = DiskStore::open(folder.path(), 100 << 20).unwrap();
    let there: Vec<u32> = (0..10).filter(|number| has(&mut store, *number)).collect();
    assert_eq!(there, [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    assert_eq!(store.stats().damaged.load(Ordering::Relaxed), 1);
    fill(&mut store, 3..4);
    assert!(has(&mut store, 3));
}

/// Damage while it runs is found when a consumer asks again.
#[test]
fn what_is_asked_for_again_is_looked_at_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = DiskStore::open(folder.path(), 100 << 20).unwrap();
    fill(&mut store, 0..10);
    store.flush().unwrap();
    assert!(has(&mut store, 3));
    let pack = OpenOptions::new()
        .write(true)
        .open(folder.path().join("00000000.pack"))
        .unwrap();
    pack.write_all_at(&[0xFF; 100], 3 * 1004 + 500).unwrap();
    pack.write_all_at(&[0xFF; 100], 5 * 1004 + 500).unwrap();
    let (name, other) = (chunk(3).0, chunk(5).0);
    for name in [name, other] {
        let found = get(&mut store, &name, false);
        assert!(found.is_some(), "it was right when it was looked at");
    }
    assert_eq!(get(&mut store, &name, true), None);
    assert_eq!(get(&mut store, &name, false), None);
    assert_eq!(
        get(&mut store, &other, false),
        None,
        "nor is its neighbour believed"
    );
    assert!(has(&mut store, 4));
}

#[test]
fn lists_that_make_no_sense_name_nothing() {
    let folder = tempfile::tempdir().unwrap();
    drop(DiskStore::open(folder.path(), 1 << 20).unwrap());
    fs::write(folder.path().join("00000007.pack"), [1; 100]).unwrap();
    let far = [&[2; 32][..], &90u32.to_be_bytes(), &u32::MAX.to_be_bytes()].concat();
    let beyond = [&[3; 32][..], &90u32.to_be_bytes(), &11u32.to_be_bytes(), &[9; 5]].concat();
    fs::write(folder.path().join("00000007.list"), [far, beyond].concat()).unwrap();
    fs::write(folder.path().join("00000008.list"), [1; 80]).unwrap();
    let mut store = DiskStore::open(folder.path(), 1 << 20).unwrap();
    assert!(get(&mut store, &[2; 32], false).is_none() && get(&mut store, &[3; 32], false).is_none());
    fill(&mut store, 0..3);
    assert!((0..3).all(|number| has(&mut store, number)));
}

#[test]
fn a_folder_of_somebody_else_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("20240101.list");
    std::fs::write(&list, "milk").unwrap();
    let Err(error) = DiskStore::open(folder.path(), 4 << 20) else {
        panic!("it is no store");
    };
    assert_eq!(error.kind(), std::io::ErrorKind::DirectoryNotEmpty);
    assert_eq!(std::fs::read(&list).unwrap(), b"milk");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    std::fs::rename(&list, folder.path().join("lost+found")).unwrap();
    assert!(
        DiskStore::open(folder.path(), 4 << 20).is_ok(),
        "a new file system"
    );
}

#[test]
fn what_is_no_root_is_not_removed_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = DiskStore::open(folder.path(), 4 << 20).unwrap();
    let roots = folder.path().join("roots");
    std::fs::write(roots.join("notes"), vec![0; 1 << 20]).unwrap();
    let old = roots.join("0".repeat(64));
    std::fs::write(&old, vec![0; 1 << 20]).unwrap();
    store.bound_roots().unwrap();
    assert!(roots.join("notes").exists());
    assert!(!old.exists(), "a quarter of the limit is too much");
}

/// It forgot the chunk, and whoever knew its digest could empty a cache.
#[test]
fn a_digest_that_only_begins_like_that_of_a_chunk_does_not_damage_it() {
    let folder = tempfile::tempdir().unwrap();
    for hash in [Hash::Sha256, Hash::Blake3] {
        let bytes = Bytes::from(vec![hash as u8; 32_000]);
        let name = hash.digest(&bytes);
        let mut store = DiskStore::open(folder.path(), 100 << 20).unwrap();
        store.put(&name, &bytes);
        let mut other = name;
        other[31] ^= 1;
        assert_eq!(get(&mut store, &other, true), None);
        assert_eq!(store.stats().damaged.load(Ordering::Relaxed), 0);
        assert_eq!(get(&mut store, &name, true), Some(bytes));
    }
}
