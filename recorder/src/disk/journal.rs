//! The changes of a folder by this thread, and every state in which a power loss could leave it.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::Change;

/// Names, and the number of the file that each refers to.
type Names = BTreeMap<String, usize>;
/// The bytes of files, by number.
type Contents = HashMap<usize, Vec<u8>>;
/// The files that are left, with their names.
type Files = Vec<(String, Vec<u8>)>;
/// What was left after how many calls.
pub(super) type Seen = HashSet<(usize, Files)>;

thread_local! {
    static JOURNAL: RefCell<Option<Journal>> = const { RefCell::new(None) };
}

/// What happened in a folder.
#[derive(Default)]
pub(super) struct Journal {
    folder: PathBuf,
    /// The number of each file that has a name: the system gives the inode of a removed file to the next one.
    numbers: HashMap<u64, usize>,
    files: usize,
    /// What was written last, and what was synced last.
    written: Contents,
    synced: Contents,
    pub(super) moments: Vec<Moment>,
}

/// The folder after a change.
pub(super) struct Moment {
    /// How many calls had returned.
    pub(super) returned: usize,
    names: Names,
    written: Contents,
    synced: Contents,
    /// The names are known to be on disk.
    durable: bool,
}

/// Begins with a folder, which must be empty.
pub(super) fn watch(folder: &Path) {
    let journal = Journal { folder: folder.into(), ..Journal::default() };
    JOURNAL.set(Some(journal));
    note(&Change::FolderSynced, &folder.join("x"));
}

/// Ends, and hands over what happened.
pub(super) fn finish() -> Journal {
    JOURNAL.take().unwrap()
}

/// A call has returned: what it accepted must survive from now on.
pub(super) fn returned() {
    JOURNAL.with_borrow_mut(|journal| {
        let journal = journal.as_mut().unwrap();
        journal.add(false);
        journal.moments.last_mut().unwrap().returned += 1;
    });
}

pub(super) fn note(change: &Change, path: &Path) {
    JOURNAL.with_borrow_mut(|journal| {
        let Some(journal) = journal.as_mut().filter(|journal| path.parent() == Some(&journal.folder)) else { return };
        journal.add(matches!(change, Change::FolderSynced));
        if let Change::Synced = change {
            let moment = journal.moments.last_mut().unwrap();
            let number = moment.names[path.file_name().unwrap().to_str().unwrap()];
            journal.synced.insert(number, moment.written[&number].clone());
            moment.synced = journal.synced.clone();
        }
    });
}

impl Journal {
    fn add(&mut self, durable: bool) {
        let mut names = Names::new();
        let mut present = HashMap::new();
        for entry in fs::read_dir(&self.folder).unwrap() {
            let entry = entry.unwrap();
            let inode = entry.metadata().unwrap().ino();
            let known = self.numbers.get(&inode).or_else(|| present.get(&inode)).copied();
            let number = known.unwrap_or_else(|| {
                self.files += 1;
                self.files
            });
            present.insert(inode, number);
            self.written.insert(number, fs::read(entry.path()).unwrap());
            names.insert(entry.file_name().into_string().unwrap(), number);
        }
        self.numbers = present;
        let returned = self.moments.last().map_or(0, |moment| moment.returned);
        let (written, synced) = (self.written.clone(), self.synced.clone());
        self.moments.push(Moment { returned, names, written, synced, durable });
    }

    /// Calls `check` with every folder that a power loss at this moment could leave: the names as they were when they
    /// were last synced or at any time since, and of each file what was synced, what was written since, or a part. What
    /// is in `seen` is not tried again.
    pub(super) fn after_power_loss(&self, moment: usize, left: &Path, seen: &mut Seen, mut check: impl FnMut(&str)) {
        let now = &self.moments[moment];
        let durable = self.moments[..=moment].iter().rposition(|before| before.durable).unwrap();
        for before in durable..=moment {
            for (how, part) in [("no unsynced byte", 0), ("half of the unsynced bytes", 1), ("all bytes", 2)] {
                let of = |(name, number): (&String, &usize)| {
                    let synced = now.synced.get(number).map_or(&[][..], Vec::as_slice);
                    let written = &now.written[number];
                    let same = synced.iter().zip(written).take_while(|(a, b)| a == b).count();
                    let bytes = match part {
                        0 => synced,
                        1 => &written[..same + (written.len() - same) / 2],
                        _ => written,
                    };
                    (name.clone(), bytes.to_vec())
                };
                let files: Files = self.moments[before].names.iter().map(of).collect();
                if !seen.insert((now.returned, files.clone())) {
                    continue;
                }
                fs::create_dir(left).unwrap();
                for (name, bytes) in files {
                    fs::write(left.join(name), bytes).unwrap();
                }
                check(&format!("power loss after change {moment}, names of change {before}, {how}"));
                fs::remove_dir_all(left).unwrap();
            }
        }
    }
}
