//! What the modelled file system does, effect by effect, as the manual has it.

use outlive_model::effect::{Effect, Reply};
use outlive_model::filesystem::{Data, Filesystem, Owner};
use outlive_model::role::{descriptor, first_job};
use state_machine::control::{Control, Request};
use state_machine::disk::{Change, Create, Dir, Fill, Mode, Name, Open, Place, Read};
use state_machine::id::Ticket;
use state_machine::job::State;
use state_machine::record::Line;

const ME: Owner = Owner::Process(0);
const OTHER: Owner = Owner::Process(1);

fn ticket(word: &str) -> Ticket {
    Ticket::parse(word).unwrap()
}

fn staged() -> Dir {
    Dir::Staged(ticket("t"))
}

/// A file system with a directory in `staging/` and a lock in it, which I have open as 0.
fn with_staged_lock() -> Filesystem {
    let mut files = Filesystem::default();
    assert_eq!(
        files.apply(ME, &Effect::Mkdir(staged())),
        Reply::Changed(Change::Done)
    );
    let created = files.apply(ME, &Effect::Create(staged().at(Name::Lock)));
    assert_eq!(created, Reply::Created(Create::Created(0)));
    files
}

fn lock(files: &mut Filesystem, who: Owner, mode: Mode) -> bool {
    files.apply(who, &Effect::Lock(0, mode)) == Reply::Is(true)
}

fn open(files: &mut Filesystem, who: Owner, place: &Place) -> Reply {
    files.apply(who, &Effect::Open(place.clone(), Mode::Exclusive))
}

fn change(files: &mut Filesystem, effect: Effect) -> Change {
    match files.apply(ME, &effect) {
        Reply::Changed(change) => change,
        other => panic!("{effect} -> {other}"),
    }
}

#[test]
fn a_lock_follows_its_file_through_a_rename_of_the_directory() {
    let mut files = with_staged_lock();
    assert!(lock(&mut files, ME, Mode::Exclusive));
    let job = Place::Dir(Dir::Job(first_job()));
    let moved = Effect::RenameNew(Place::Dir(staged()), job.clone());
    assert_eq!(change(&mut files, moved.clone()), Change::Done);
    files.renumber();
    let at_job = Place::of_job(&first_job(), Name::Lock);
    assert!(files.holds(ME, &at_job));
    assert!(!files.has(&staged().at(Name::Lock)));
    assert_eq!(
        files.apply(ME, &Effect::Stands(0, at_job.clone())),
        Reply::Is(true)
    );
    assert_eq!(
        open(&mut files, OTHER, &at_job),
        Reply::Opened(Open::Opened(0))
    );
    assert!(!lock(&mut files, OTHER, Mode::Exclusive));
    assert_eq!(change(&mut files, moved), Change::Absent);
}

#[test]
fn shared_locks_go_together_and_two_opens_of_one_process_do_not() {
    let mut files = with_staged_lock();
    let place = staged().at(Name::Lock);
    open(&mut files, OTHER, &place);
    assert!(lock(&mut files, ME, Mode::Shared));
    assert!(lock(&mut files, OTHER, Mode::Shared));
    assert_eq!(open(&mut files, ME, &place), Reply::Opened(Open::Opened(1)));
    let refused = files.apply(ME, &Effect::Lock(1, Mode::Exclusive));
    assert_eq!(refused, Reply::Is(false));
}

#[test]
fn a_lock_lasts_until_the_last_who_shares_the_description_is_gone() {
    let mut files = with_staged_lock();
    assert!(lock(&mut files, ME, Mode::Exclusive));
    files.inherit(ME, 0, Owner::Tree(0));
    files.close_all(ME);
    let place = staged().at(Name::Lock);
    open(&mut files, OTHER, &place);
    assert!(!lock(&mut files, OTHER, Mode::Exclusive));
    files.close_all(Owner::Tree(0));
    assert!(lock(&mut files, OTHER, Mode::Exclusive));
}

#[test]
fn a_lock_on_an_unlinked_file_is_a_lock_on_nothing() {
    let mut files = with_staged_lock();
    let place = staged().at(Name::Lock);
    assert_eq!(
        change(&mut files, Effect::Unlink(place.clone())),
        Change::Done
    );
    assert!(lock(&mut files, ME, Mode::Exclusive));
    open(&mut files, OTHER, &place);
    assert_eq!(
        files.apply(OTHER, &Effect::Create(place.clone())),
        Reply::Created(Create::Created(0))
    );
    assert!(lock(&mut files, OTHER, Mode::Exclusive));
    assert_eq!(files.apply(ME, &Effect::Stands(0, place)), Reply::Is(false));
}

#[test]
fn a_link_replaces_nothing_and_a_rename_onto_the_same_file_does_nothing() {
    let mut files = with_staged_lock();
    let request = Dir::Staging.at(Name::Request(ticket("r")));
    let control = staged().at(Name::Control);
    let link = Effect::Link(request.clone(), control.clone());
    assert_eq!(change(&mut files, link.clone()), Change::Absent);
    let write = Effect::Write(request.clone(), Data::Request(Request::Pause));
    assert_eq!(change(&mut files, write), Change::Done);
    assert_eq!(change(&mut files, link.clone()), Change::Done);
    assert_eq!(change(&mut files, link), Change::Exists);
    let rename = Effect::Rename(request.clone(), control.clone());
    assert_eq!(change(&mut files, rename), Change::Done);
    assert!(files.has(&request) && files.has(&control));
}

#[test]
fn files_and_directories_are_told_apart() {
    let mut files = with_staged_lock();
    let request = Effect::Write(
        Dir::Staging.at(Name::Request(ticket("r"))),
        Data::Request(Request::Cancel),
    );
    assert_eq!(change(&mut files, request), Change::Done);
    assert_eq!(
        change(&mut files, Effect::Rmdir(staged())),
        Change::NotEmpty
    );
    assert_eq!(
        change(&mut files, Effect::Rmdir(Dir::Staged(ticket("r")))),
        Change::NotDirectory
    );
    assert_eq!(
        change(&mut files, Effect::Rmdir(Dir::Staged(ticket("x")))),
        Change::Absent
    );
    let as_file = Dir::Staging.at(Name::Request(ticket("t")));
    assert_eq!(
        change(&mut files, Effect::Unlink(as_file)),
        Change::NotEmpty
    );
    let below_a_file = Dir::Staged(ticket("r")).at(Name::Lock);
    assert_eq!(
        open(&mut files, ME, &below_a_file),
        Reply::Opened(Open::Absent)
    );
    assert_eq!(change(&mut files, Effect::Mkdir(staged())), Change::Exists);
    let listed = files.apply(ME, &Effect::List(Dir::Staging));
    assert_eq!(listed.to_string(), "{r, t}");
}

#[test]
fn half_an_append_costs_the_line_after_it_unless_that_mends() {
    for (mend, lines) in [(true, 2), (false, 1)] {
        let mut files = with_staged_lock();
        let line = |state| vec![Line::state(1, state)];
        let append = |state, mend| Effect::Append(staged(), line(state), mend);
        files.apply(ME, &append(State::Queued, false));
        files.apply_half(&append(State::Running, false));
        files.apply(ME, &append(State::Interrupted, mend));
        let Reply::Holds(Some(data)) = files.apply(ME, &Effect::ReadHistory(staged())) else {
            panic!("it has a history");
        };
        let history = data.history();
        assert_eq!(history.lines.len(), lines);
        assert!(!history.torn);
    }
}

/// A staged directory with room for a descriptor in it.
fn with_room() -> (Filesystem, Place) {
    let mut files = with_staged_lock();
    let place = staged().at(Name::Descriptor);
    let laid_in = Effect::Write(place.clone(), Data::Blank);
    assert_eq!(change(&mut files, laid_in), Change::Done);
    (files, place)
}

fn job() -> Data {
    Data::Descriptor(Box::new(descriptor()))
}

#[test]
fn a_fill_keeps_the_length_and_needs_room() {
    let (mut files, place) = with_room();
    let fill = Effect::Fill(place.clone(), job());
    assert_eq!(files.apply(ME, &fill), Reply::Filled(Fill::Done));
    let held = files.data(&place).expect("it is there");
    assert_eq!(held.length(), Data::Blank.length());
    assert_eq!(held.descriptor(), Read::Value(descriptor()));
    assert!(matches!(held.control(), Control::Unknown(_)), "too long");
    // What was filled in can be filled in again, and an empty file has no room.
    assert_eq!(files.apply(ME, &fill), Reply::Filled(Fill::Done));
    let into_lock = Effect::Fill(staged().at(Name::Lock), job());
    assert_eq!(files.apply(ME, &into_lock), Reply::Filled(Fill::NoRoom));
    let into_nothing = Effect::Fill(staged().at(Name::Status), job());
    assert_eq!(files.apply(ME, &into_nothing), Reply::Filled(Fill::Absent));
}

#[test]
fn a_fill_that_is_cut_short_leaves_neither_the_old_nor_the_new() {
    let (whole, place) = with_room();
    let fill = Effect::Fill(place.clone(), job());
    let is_a_mixture = |files: &Filesystem| {
        let held = files.data(&place).expect("it is there");
        let damaged = matches!(held.descriptor(), Read::Damaged(_));
        damaged && **held != Data::Blank && held.length() == Data::Blank.length()
    };
    assert!(whole.has_halves(&fill));
    for cut in [Filesystem::apply_half, Filesystem::apply_failure] {
        let mut files = whole.clone();
        cut(&mut files, &fill);
        assert!(is_a_mixture(&files));
        // It can be filled again all the same.
        assert_eq!(files.apply(ME, &fill), Reply::Filled(Fill::Done));
    }
    // And where there is no room, nothing of it happens.
    let mut files = whole.clone();
    let into_lock = Effect::Fill(staged().at(Name::Lock), job());
    assert!(!files.has_halves(&into_lock));
    files.apply_half(&into_lock);
    assert_eq!(files, whole);
}

#[test]
fn a_fill_that_is_not_synced_can_be_lost_in_part() {
    let (mut files, place) = with_room();
    files.fit_medium();
    files.apply(ME, &Effect::Fill(place.clone(), job()));
    let read = |files: &Filesystem| {
        let held = files.data(&place).expect("its name was synced");
        (
            held.descriptor() == Read::Value(descriptor()),
            **held == Data::Blank,
        )
    };
    let mut fates: Vec<_> = files.images().iter().map(read).collect();
    fates.sort_unstable();
    assert_eq!(fates, [(false, false), (false, true), (true, false)]);
    assert_eq!(
        change(&mut files, Effect::Sync(place.clone())),
        Change::Done
    );
    let fates: Vec<_> = files.images().iter().map(read).collect();
    assert_eq!(fates, [(true, false)]);
}

#[test]
fn a_hand_writes_into_what_it_has_open_wherever_that_is() {
    let mut files = with_staged_lock();
    let [there, moved] = [Name::Control, Name::Taken].map(|name| staged().at(name));
    for who in [ME, OTHER] {
        let opened = files.apply(who, &Effect::HandOpen(there.clone()));
        assert!(matches!(opened, Reply::Opened(Open::Opened(_))));
    }
    let taken = Effect::Rename(there, moved.clone());
    assert_eq!(change(&mut files, taken), Change::Done);
    let asked = |files: &Filesystem| files.data(&moved).map(|data| data.control());
    files.apply(ME, &Effect::HandWrite(1, Request::Cancel));
    assert_eq!(asked(&files), Some(Control::Asked(Request::Cancel)));
    // The shorter word leaves the end of the longer one behind it: a line end.
    files.apply(OTHER, &Effect::HandWrite(0, Request::Pause));
    assert_eq!(asked(&files), Some(Control::Asked(Request::Pause)));
    let length = files.data(&moved).map(|data| data.length());
    assert_eq!(length, Some("pause\n\n".len()));
}

#[test]
fn the_order_of_making_does_not_matter_once_renumbered() {
    let made_in = |order: [&str; 2]| {
        let mut files = Filesystem::default();
        for word in order {
            files.apply(ME, &Effect::Mkdir(Dir::Staged(ticket(word))));
        }
        files.renumber();
        files
    };
    assert_eq!(made_in(["a", "b"]), made_in(["b", "a"]));
}
