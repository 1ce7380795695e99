use super::super::manifest::{Entry, Modified};
use super::*;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<_> = entries
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn entry(parent: Option<usize>, name: &str, kind: Kind) -> Entry {
    Entry {
        parent,
        name: name.into(),
        mode: 0o640,
        modified: Modified {
            seconds: 1_000_000_000,
            nanoseconds: 5,
        },
        kind,
    }
}

async fn begin(folder: &Folder, entries: Vec<Entry>) -> Result<Target, TargetError> {
    begin_of(b"peer", folder, entries).await
}

async fn begin_of(peer: &[u8], folder: &Folder, entries: Vec<Entry>) -> Result<Target, TargetError> {
    let manifest = Manifest::new(entries).expect("good");
    let begun = Target::begin(folder, manifest.encode().expect("short"), peer.to_vec()).await;
    begun.map(|(target, _)| target)
}

async fn begin_file(folder: &Folder, name: &str) -> Result<Target, TargetError> {
    begin(folder, vec![entry(None, name, Kind::File(Some(7)))]).await
}

async fn put(target: &Target, content: &'static [u8]) {
    assert!(target.put(Piece::Data(vec![Bytes::from_static(content)])).await);
}

async fn receive(folder: &Folder, name: &str, content: &'static [u8]) -> Result<Delivery, TargetError> {
    let target = begin_file(folder, name).await?;
    put(&target, content).await;
    assert!(target.put(Piece::End(Sha256::digest(content).into())).await);
    target.complete().await
}

#[tokio::test]
async fn a_file_appears_whole_and_only_when_its_digest_is_right() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = Folder::open(dir.path(), false, true).expect("opens");
    let delivery = receive(&folder, "a", b"content").await.expect("received");
    assert_eq!(delivery.digest, <Digest>::from(Sha256::digest(b"content")));
    assert_eq!(fs::read(dir.path().join("a")).expect("there"), b"content");
    let found = fs::metadata(dir.path().join("a")).expect("there");
    assert_eq!(
        (found.mode() & 0o7777, found.mtime(), found.mtime_nsec()),
        (0o640, 1_000_000_000, 5)
    );

    let wrong = begin_file(&folder, "b").await.expect("begins");
    put(&wrong, b"content").await;
    wrong.put(Piece::End([0; 32])).await;
    assert!(matches!(wrong.complete().await, Err(TargetError::Mismatch(_))));
    let dropped = begin_file(&folder, "b").await.expect("begins");
    put(&dropped, b"half").await;
    assert!(dropped.complete().await.is_err());
    assert_eq!(names(dir.path()), ["a"]);
}

#[tokio::test]
async fn what_exists_stays_unless_overwriting_is_allowed() {
    let dir = tempfile::tempdir().expect("a folder");
    let careful = Folder::open(dir.path(), false, false).expect("opens");
    let bold = Folder::open(dir.path(), true, false).expect("opens");
    receive(&careful, "a", b"first").await.expect("received");
    assert!(matches!(
        receive(&careful, "a", b"x").await,
        Err(TargetError::Exists(_))
    ));
    receive(&bold, "a", b"second").await.expect("received");
    assert_eq!(fs::read(dir.path().join("a")).expect("there"), b"second");

    fs::create_dir(dir.path().join("d")).expect("created");
    assert!(matches!(
        receive(&bold, "d", b"x").await,
        Err(TargetError::Folder(_))
    ));
    let folder = vec![entry(None, "a", Kind::Folder)];
    assert!(matches!(
        begin(&bold, folder).await,
        Err(TargetError::NoFolder(_))
    ));
}

#[tokio::test]
async fn a_name_taken_while_the_file_was_on_its_way_is_not_overwritten() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = Folder::open(dir.path(), false, false).expect("opens");
    let target = begin_file(&folder, "a").await.expect("begins");
    fs::write(dir.path().join("a"), "other").expect("written");
    target.put(Piece::End(Sha256::digest(b"").into())).await;
    assert!(matches!(target.complete().await, Err(TargetError::Exists(_))));
    assert_eq!(fs::read(dir.path().join("a")).expect("there"), b"other");
    assert_eq!(names(dir.path()), ["a"]);
}

/// The sender was told of the file that was there before.
#[tokio::test]
async fn a_file_that_is_replaced_after_it_was_compared_is_said_to_be() {
    for replaced in ["other content", "shorter", "removed"] {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), true, false).expect("opens");
        let (other, place) = (dir.path().join("other"), dir.path().join("b"));
        fs::write(dir.path().join("a"), "content").expect("written");
        fs::write(&place, "content").expect("written");
        let tree = ["a", "b"].map(|name| entry(None, name, Kind::File(Some(7))));
        let manifest = Manifest::new(tree.to_vec()).expect("good");
        let encoded = manifest.encode().expect("short");
        let (target, mut told) = Target::begin(&folder, encoded, b"peer".to_vec())
            .await
            .expect("begins");
        while told.recv().await.is_some() {}
        match replaced {
            "removed" => fs::remove_file(&place).expect("removed"),
            how => {
                fs::write(&other, if how == "shorter" { "cont" } else { "CONTENT" }).expect("written");
                fs::rename(&other, &place).expect("renamed");
            }
        }
        let digest = || Piece::End(Sha256::digest(b"content").into());
        put(&target, b"content").await;
        assert!(target.put(digest()).await);
        // The receiver may have noticed already.
        let _ = target.put(Piece::Same(7)).await;
        let _ = target.put(digest()).await;
        let error = target.complete().await.expect_err("changed");
        assert!(
            matches!(&error, TargetError::Changed(path) if path == "b"),
            "{replaced}: {error}"
        );
    }
}

#[tokio::test]
async fn links_are_never_followed() {
    let outside = tempfile::tempdir().expect("a folder");
    let dir = tempfile::tempdir().expect("a folder");
    let victim = outside.path().join("victim");
    symlink(&victim, dir.path().join("a")).expect("linked");
    let careful = Folder::open(dir.path(), false, false).expect("opens");
    assert!(matches!(
        receive(&careful, "a", b"x").await,
        Err(TargetError::Exists(_))
    ));
    let bold = Folder::open(dir.path(), true, false).expect("opens");
    receive(&bold, "a", b"x").await.expect("received");
    assert!(!victim.exists(), "the link was replaced, not followed");
    let there = fs::symlink_metadata(dir.path().join("a")).expect("there");
    assert!(there.is_file());
}

/// Whoever may write to the folder puts a link in the place of a folder, before the transfer or in the middle of it.
#[tokio::test]
async fn a_link_in_the_place_of_a_folder_leads_nothing_out() {
    let tree = || {
        vec![
            entry(None, "d", Kind::Folder),
            entry(Some(0), "f", Kind::File(Some(1))),
            entry(Some(0), "g", Kind::File(Some(1))),
        ]
    };
    for overwrite in [false, true] {
        let outside = tempfile::tempdir().expect("a folder");
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), overwrite, false).expect("opens");
        let place = dir.path().join("d");
        symlink(outside.path(), &place).expect("linked");
        assert!(matches!(
            begin(&folder, tree()).await,
            Err(TargetError::NoFolder(_))
        ));

        fs::remove_file(&place).expect("removed");
        let target = begin(&folder, tree()).await.expect("begins");
        put(&target, b"1").await;
        // The piece has been taken once there is room for as many as the channel holds.
        for _ in 0..CHUNKS_AHEAD {
            put(&target, b"").await;
        }
        fs::remove_dir(&place).expect("removed");
        symlink(outside.path(), &place).expect("linked");
        assert!(target.put(Piece::End(Sha256::digest(b"1").into())).await);
        assert!(matches!(target.complete().await, Err(TargetError::WriteTo(..))));
        assert!(names(outside.path()).is_empty());
        assert_eq!(names(dir.path()), ["d"]);
    }
}

/// Whatever the umask of the receiver is.
#[tokio::test]
async fn a_folder_that_was_cut_off_gets_its_permissions_and_time_from_the_next() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = Folder::open(dir.path(), false, false).expect("opens");
    let mut tree = vec![
        entry(None, "d", Kind::Folder),
        entry(Some(0), "f", Kind::File(Some(1))),
    ];
    tree[0].mode = 0o577;
    let at = || fs::metadata(dir.path().join("d")).expect("there");
    for cut_off in [true, false] {
        let target = begin(&folder, tree.clone()).await.expect("begins");
        put(&target, b"1").await;
        if cut_off {
            assert!(target.complete().await.is_err());
            assert_eq!(at().mode() & 0o7777, 0o1755, "nobody else writes meanwhile");
        } else {
            assert!(target.put(Piece::End(Sha256::digest(b"1").into())).await);
            target.complete().await.expect("received");
        }
    }
    assert_eq!((at().mode() & 0o7777, at().mtime()), (0o577, 1_000_000_000));
}

/// Permissions that a folder on its way could have, in releases before and in this one.
#[tokio::test]
async fn a_folder_that_was_there_keeps_its_permissions_unless_it_was_on_its_way() {
    for (there, sent, overwrite, expected) in [
        (0o755, 0o055, false, 0o755),
        (0o1777, 0o777, false, 0o1777),
        (0o1770, 0o755, false, 0o1770),
        (0o2775, 0o775, false, 0o2775),
        (0o3755, 0o755, false, 0o3755),
        (0o1777, 0o755, true, 0o1755),
        (0o2775, 0o555, true, 0o2555),
        (0o2755, 0o755, true, 0o2755),
        // Cut off, and sent with other permissions.
        (0o1750, 0o755, false, 0o755),
        (0o1750, 0o755, true, 0o755),
        (0o1755, 0o500, false, 0o500),
    ] {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), overwrite, false).expect("opens");
        let place = dir.path().join("d");
        fs::create_dir(&place).expect("made");
        fs::set_permissions(&place, PermissionsExt::from_mode(there)).expect("set");
        let mut tree = vec![entry(None, "d", Kind::Folder)];
        tree[0].mode = sent;
        let target = begin(&folder, tree).await.expect("begins");
        target.complete().await.expect("received");
        let now = fs::metadata(&place).expect("there").mode() & 0o7777;
        assert_eq!(now, expected, "{there:o} {sent:o}");
    }
}

#[tokio::test]
async fn a_read_only_folder_is_opened_only_to_overwrite_and_is_read_only_again() {
    for (overwrite, sent, end, meanwhile, after) in [
        (true, 0o555, "good", 0o1755, 0o555),
        (true, 0o555, "wrong digest", 0o1755, 0o555),
        (true, 0o755, "good", 0o555, 0o755), // its owner made it so
        (false, 0o555, "good", 0o555, 0o555),
        (false, 0o755, "good", 0o555, 0o555),
    ] {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), overwrite, false).expect("opens");
        let place = dir.path().join("d");
        fs::create_dir(&place).expect("made");
        fs::set_permissions(&place, PermissionsExt::from_mode(0o555)).expect("set");
        let mut tree = vec![
            entry(None, "d", Kind::Folder),
            entry(Some(0), "f", Kind::File(Some(1))),
        ];
        tree[0].mode = sent;
        let target = begin(&folder, tree).await.expect("begins");
        // The writer has come to the file once there is room for as many as the channel holds.
        put(&target, b"1").await;
        for _ in 0..CHUNKS_AHEAD {
            put(&target, b"").await;
        }
        let mode = || fs::metadata(&place).expect("there").mode() & 0o7777;
        assert_eq!(mode(), meanwhile, "{overwrite} {sent:o} {end}");
        let content = if end == "good" { &b"1"[..] } else { b"2" };
        assert!(target.put(Piece::End(Sha256::digest(content).into())).await);
        // What is read-only by its owner's will is so to all but root.
        let _ = target.complete().await;
        assert_eq!(mode(), after, "{overwrite} {sent:o} {end}");
    }
}

/// The first is in the middle of its file when the second, who sends the same folder with other permissions, has come and gone.
#[tokio::test]
async fn a_second_sender_of_the_same_folder_keeps_the_first_out_of_nothing() {
    for (overwrite, there, sent) in [(false, None, 0o755), (true, Some(0o555), 0o555)] {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), overwrite, false).expect("opens");
        let place = dir.path().join("d");
        if let Some(mode) = there {
            fs::create_dir(&place).expect("made");
            fs::set_permissions(&place, PermissionsExt::from_mode(mode)).expect("set");
        }
        let tree = |name: &str, mode| {
            let mut tree = vec![
                entry(None, "d", Kind::Folder),
                entry(Some(0), name, Kind::File(Some(1))),
            ];
            tree[0].mode = mode;
            tree
        };
        let first = begin(&folder, tree("first", sent)).await.expect("begins");
        put(&first, b"1").await;
        for _ in 0..CHUNKS_AHEAD {
            put(&first, b"").await;
        }
        let mode = || fs::metadata(&place).expect("there").mode() & 0o7777;
        let filled = u32::from(0o1700 | sent);
        assert_eq!(mode(), filled);
        for (peer, other) in [(b"other", 0o555), (b"third", 0o777)] {
            let second = begin_of(peer, &folder, tree("second", other))
                .await
                .expect("begins");
            put(&second, b"2").await;
            let end = Piece::End(Sha256::digest(b"2").into());
            assert!(second.put(end).await);
            second.complete().await.expect("received");
            assert_eq!(mode(), filled, "{other:o}");
        }
        assert!(first.put(Piece::End(Sha256::digest(b"1").into())).await);
        first.complete().await.expect("received");
        assert_eq!(mode(), u32::from(sent));
        assert_eq!(names(&place), ["first", "second"]);
    }
}

#[tokio::test]
async fn a_folder_of_another_user_keeps_its_permissions_and_fails_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = Folder::open(dir.path(), true, false).expect("opens");
    let place = dir.path().join("d");
    fs::create_dir(&place).expect("made");
    if std::os::unix::fs::chown(&place, Some(1), None).is_err() {
        return; // only root gives something away
    }
    let before = fs::metadata(&place).expect("there").mode();
    let mut tree = vec![entry(None, "d", Kind::Folder)];
    tree[0].mode = 0o700;
    let target = begin(&folder, tree).await.expect("begins");
    target.complete().await.expect("received");
    assert_eq!(fs::metadata(&place).expect("there").mode(), before);
}

#[tokio::test]
async fn a_tree_has_its_modes_times_links_and_holes() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = Folder::open(dir.path(), false, false).expect("opens");
    let mut tree = vec![
        entry(None, "d", Kind::Folder),
        entry(Some(0), "f", Kind::File(Some(8 << 20))),
        entry(Some(0), "l", Kind::Link("f".into())),
    ];
    tree[0].mode = 0o555;
    let target = begin(&folder, tree.clone()).await.expect("begins");
    put(&target, b"1").await;
    target.put(Piece::Hole((8 << 20) - 1)).await;
    let content = [&b"1"[..], &vec![0; (8 << 20) - 1]].concat();
    target.put(Piece::End(Sha256::digest(&content).into())).await;
    target.complete().await.expect("received");
    let at = |name: &str| fs::symlink_metadata(dir.path().join(name)).expect("there");
    assert_eq!(at("d").mode() & 0o7777, 0o555);
    for name in ["d", "d/f", "d/l"] {
        assert_eq!(
            (at(name).mtime(), at(name).mtime_nsec()),
            (1_000_000_000, 5),
            "{name}"
        );
    }
    assert_eq!(
        fs::read_link(dir.path().join("d/l")).expect("a link"),
        Path::new("f")
    );
    assert_eq!(fs::read(dir.path().join("d/f")).expect("there"), content);
    assert!(at("d/f").blocks() * 512 < 8 << 20, "the hole takes no room");
}

/// They were hashed to their end, while the sender waited to hear of the next file and was given up.
#[tokio::test]
async fn what_is_there_of_a_file_that_does_not_come_is_not_read_to_its_end() {
    const BYTES: u64 = 160 << 20;
    let dir = tempfile::tempdir().expect("a folder");
    let folder = Folder::open(dir.path(), false, false).expect("opens");
    let there = fs::File::create(dir.path().join("a")).expect("made");
    there.set_len(BYTES).expect("sparse");
    let entries = vec![
        entry(None, "a", Kind::File(Some(BYTES))),
        entry(None, "b", Kind::File(Some(1))),
    ];
    let manifest = Manifest::new(entries).expect("good").encode().expect("short");
    let begun = Target::begin(&folder, manifest, b"peer".to_vec()).await;
    let (target, mut answers) = begun.expect("begins");
    assert!(target.put(Piece::Left).await);
    while target.pieces.capacity() < target.pieces.max_capacity() {
        tokio::task::yield_now().await; // until the writer has seen it
    }
    let mut last = Vec::new();
    while let Some(answer) = answers.recv().await {
        if let Answer::Digests(digests) = answer {
            last = digests;
        }
    }
    assert!(!last.is_empty() && last.iter().all(|digest| *digest == Digest::default()));
    put(&target, b"b").await;
    assert!(target.put(Piece::End(Sha256::digest(b"b").into())).await);
    let delivery = target.complete().await.expect("received");
    assert_eq!(delivery.left_out, [0]);
    assert_eq!(fs::metadata(dir.path().join("a")).expect("stays").len(), BYTES);
}
