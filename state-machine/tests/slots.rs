//! Slots: who has one, with a death or a fault at every effect. What several do at once is the model's.

// Only a part of it is needed here.
#[allow(dead_code)]
#[path = "support/fake.rs"]
mod fake;

use fake::{Fake, Fault, Handle, How, Image};
use state_machine::disk::{Dir, Name};
use state_machine::id::{PoolName, Ticket, Token};
use state_machine::protocol::slot::enter::{Entered, enter};
use state_machine::protocol::slot::find::{Finding, Found, find};
use state_machine::protocol::slot::give_back::{Condition, give_back};
use state_machine::protocol::slot::look::{LookSlot, SlotView, Standing, look_at_slot};
use state_machine::protocol::slot::maintain::{
    Crew, Ended, Maintained, claim_maintenance, end_maintenance, maintain_slot, shed,
};
use state_machine::protocol::slot::mend::{Mending, mend, take_broken};
use state_machine::protocol::slot::occupy::{Occupant, Why};
use state_machine::protocol::slot::session::{
    Opened, TakenBack, forget_session, open_session, take_back,
};
use state_machine::record::{Claim, Holder, Outcome, Session, Slot};
use state_machine::slot::State;
use state_machine::stamp;

const NOW_MS: u64 = 1_795_000_000_000;
const DAY_MS: u64 = 86_400_000;

fn pool() -> PoolName {
    PoolName::parse("web").expect("it is a name")
}

fn token(word: &str) -> Token {
    Token::parse(word).expect("it is a word")
}

fn ticket(word: &str) -> Ticket {
    Ticket::parse(word).expect("it is a word")
}

fn claim(word: &str, holder: Holder) -> Claim {
    Claim {
        token: token(word),
        holder,
        // A process that lives: a number never makes a claim a live one (R16).
        pid: 1,
        started: 1,
        boot_id: "b".into(),
        since: stamp::of_ms(NOW_MS),
    }
}

fn session(word: &str, slot: u32, expires: Option<u64>) -> Session {
    Session {
        token: token(word),
        pool: pool(),
        slot,
        since: stamp::of_ms(NOW_MS),
        expires: expires.map(stamp::of_ms),
        note: None,
    }
}

fn sound(_: &mut Fake, _: &Occupant<Handle>) -> Result<Finding, Fault> {
    Ok(Finding::Sound)
}

fn found(disk: &mut Fake, most: u32) -> Result<Found<Handle>, Fault> {
    find(disk, &pool(), most, NOW_MS, &mut sound)
}

/// Open a session; the number of its slot, or `None` where there is no slot.
fn open(
    disk: &mut Fake,
    word: &str,
    most: u32,
    expires: Option<u64>,
) -> Result<Option<u32>, Fault> {
    let Found::Slot(occupant) = found(disk, most)? else {
        return Ok(None);
    };
    let number = occupant.number();
    let opened = open_session(
        disk,
        occupant,
        claim(word, Holder::Session),
        &session(word, number, expires),
        &ticket(word),
    )?;
    assert_eq!(opened, Opened::Yes);
    Ok(Some(number))
}

fn close(disk: &mut Fake, word: &str) -> Result<&'static str, Fault> {
    Ok(match take_back(disk, &token(word))? {
        TakenBack::Mine(occupant) => {
            give_back(disk, occupant, Condition::Clean)?;
            "closed"
        }
        TakenBack::NotOpen => "not open",
        TakenBack::Over(_) => "over",
        TakenBack::InUse(_) => "in use",
        TakenBack::Gone(_) => "gone",
        TakenBack::Damaged(..) => "damaged",
    })
}

fn view(disk: &mut Fake, number: u32) -> SlotView {
    match look_at_slot(disk, &pool(), number) {
        Ok(LookSlot::Slot(view)) => *view,
        other => panic!("{other:?}"),
    }
}

fn recorded(disk: &Fake, number: u32) -> Slot {
    let place = Dir::Slot(pool(), number).at(Name::Slot);
    let bytes = disk.image().bytes(&place).expect("it has a record");
    Slot::decode(bytes).expect("it is whole")
}

/// A maintainer whose command ends so.
struct Ends(Outcome);

impl Crew<Fake> for Ends {
    fn inspect(&mut self, _: &mut Fake, _: &Occupant<Handle>) -> Result<Finding, Fault> {
        Ok(Finding::Sound)
    }

    fn claim(&mut self, _: &Occupant<Handle>) -> Claim {
        claim("m", Holder::Maintenance)
    }

    fn run(&mut self, _: &mut Fake, occupant: &Occupant<Handle>) -> Result<Ended, Fault> {
        assert_eq!(occupant.record().state, State::Maintaining, "R17");
        Ok(Ended {
            outcome: self.0,
            now: stamp::of_ms(NOW_MS),
        })
    }
}

fn maintain(disk: &mut Fake, outcome: Outcome, now_ms: u64) -> Result<Maintained, Fault> {
    maintain_slot(disk, &pool(), 1, Some(DAY_MS), now_ms, &mut Ends(outcome))
}

/// A store with a pool of one slot that was given back.
fn one_slot() -> Fake {
    let mut disk = Fake::on(Image::store());
    open(&mut disk, "first", 1, None).expect("it works");
    assert_eq!(close(&mut disk, "first"), Ok("closed"));
    disk
}

#[test]
fn a_session_has_its_slot_until_it_is_closed_and_no_longer() {
    let mut disk = Fake::on(Image::store());
    assert_eq!(open(&mut disk, "a", 2, None), Ok(Some(1)));
    assert_eq!(open(&mut disk, "b", 2, None), Ok(Some(2)));
    let Ok(Found::None(whys)) = found(&mut disk, 2) else {
        panic!("both are taken");
    };
    assert!(matches!(
        &whys[..],
        [(1, Why::Session(_)), (2, Why::Session(_))]
    ));
    assert!(matches!(view(&mut disk, 1).standing, Standing::Session(_)));
    assert_eq!(close(&mut disk, "a"), Ok("closed"));
    assert_eq!(view(&mut disk, 1).standing, Standing::Idle);
    assert_eq!(close(&mut disk, "a"), Ok("not open"));
    assert_eq!(open(&mut disk, "c", 2, None), Ok(Some(1)));
    assert_eq!(disk.open_handles(), 0);
}

#[test]
fn an_old_token_touches_nothing() {
    // S05: the close of an earlier claim comes when the slot is another one's.
    let mut disk = Fake::on(Image::store());
    open(&mut disk, "a", 1, None).expect("it works");
    let file = Dir::Sessions.at(Name::Session(token("a")));
    let old = disk.image().bytes(&file).expect("it is open").to_vec();
    close(&mut disk, "a").expect("it works");
    open(&mut disk, "b", 1, None).expect("it works");
    // As after a crash between the slot's record and the end of the session.
    disk.image_mut().put(&file, &old);
    let before = recorded(&disk, 1);
    assert_eq!(close(&mut disk, "a"), Ok("over"));
    assert_eq!(recorded(&disk, 1), before, "R23");
    assert_eq!(close(&mut disk, "a"), Ok("not open"));
    disk.image_mut().put(&file, &old);
    assert!(matches!(
        enter(&mut disk, &token("a")),
        Ok(Entered::Over(_))
    ));
    assert!(matches!(enter(&mut disk, &token("b")), Ok(Entered::In(..))));
    assert_eq!(disk.open_handles(), 0);
}

#[test]
fn commands_of_a_session_share_its_slot_and_keep_it_from_being_closed() {
    let mut disk = one_slot();
    open(&mut disk, "a", 1, None).expect("it works");
    let Ok(Entered::In(one, _)) = enter(&mut disk, &token("a")) else {
        panic!("it is open");
    };
    let Ok(Entered::In(other, _)) = enter(&mut disk, &token("a")) else {
        panic!("two may work in it");
    };
    assert_eq!(close(&mut disk, "a"), Ok("in use"));
    drop(one);
    assert_eq!(close(&mut disk, "a"), Ok("in use"));
    drop(other);
    assert_eq!(close(&mut disk, "a"), Ok("closed"));
    assert!(matches!(
        enter(&mut disk, &token("a")),
        Ok(Entered::NotOpen)
    ));
}

#[test]
fn an_expired_session_is_closed_by_whoever_looks_if_nothing_would_be_lost() {
    let mut disk = one_slot();
    open(&mut disk, "a", 1, Some(NOW_MS + 1)).expect("it works");
    assert_eq!(
        open(&mut disk, "b", 1, None),
        Ok(None),
        "it has not expired"
    );
    close(&mut disk, "a").expect("it works");
    open(&mut disk, "a", 1, Some(NOW_MS)).expect("it works");
    let mut work = |_: &mut Fake, _: &Occupant<Handle>| Ok(Finding::Broken("work".into()));
    let kept = find(&mut disk, &pool(), 1, NOW_MS, &mut work);
    assert!(matches!(kept, Ok(Found::None(_))), "{kept:?}");
    assert!(matches!(view(&mut disk, 1).standing, Standing::Session(_)));
    assert_eq!(open(&mut disk, "b", 1, None), Ok(Some(1)));
    assert_eq!(close(&mut disk, "a"), Ok("not open"));
    assert_eq!(disk.open_handles(), 0);
}

#[test]
fn a_slot_that_is_found_broken_is_nobodys_until_it_is_mended() {
    // S31, S35: it is found so once, and the next one goes elsewhere.
    let mut disk = one_slot();
    let mut looks = 0;
    let mut first_is_broken = |_: &mut Fake, occupant: &Occupant<Handle>| {
        looks += 1;
        Ok(match occupant.number() {
            1 => Finding::Broken("HEAD is missing".into()),
            _ => Finding::Sound,
        })
    };
    let Ok(Found::Slot(second)) = find(&mut disk, &pool(), 2, NOW_MS, &mut first_is_broken) else {
        panic!("there may be two");
    };
    assert_eq!((second.number(), looks), (2, 2));
    give_back(&mut disk, second, Condition::Clean).expect("it works");
    assert_eq!(
        view(&mut disk, 1).standing,
        Standing::Broken("HEAD is missing".into())
    );
    assert_eq!(open(&mut disk, "a", 2, None), Ok(Some(2)));
    assert_eq!(open(&mut disk, "b", 2, None), Ok(None));
    let Ok(Mending::Mine(broken)) = take_broken(&mut disk, &pool(), 1) else {
        panic!("it is broken");
    };
    assert_eq!(mend(&mut disk, broken), Ok(true));
    assert!(matches!(
        take_broken(&mut disk, &pool(), 1),
        Ok(Mending::NotBroken)
    ));
    assert!(matches!(
        take_broken(&mut disk, &pool(), 9),
        Ok(Mending::Gone)
    ));
    assert_eq!(open(&mut disk, "b", 2, None), Ok(Some(1)));
    assert_eq!(disk.open_handles(), 0);
}

#[test]
fn wherever_an_opener_dies_the_slot_is_a_sessions_or_anybodys() {
    for how in How::ALL {
        for k in 0.. {
            let mut disk = Fake::on(Image::store());
            disk.fail_at(k, how);
            let opened = open(&mut disk, "a", 1, None);
            assert_eq!(disk.open_handles(), 0);
            if disk.is_armed() {
                break;
            }
            assert_eq!(opened, Err(Fault), "a fault was swallowed");
            match open(&mut disk, "b", 1, None) {
                // R16: nothing of the dead one is in the way.
                Ok(Some(1)) => {
                    let owner = recorded(&disk, 1).claim.map(|claim| claim.token);
                    assert_eq!(owner, Some(token("b")));
                }
                // It was open before it could be told.
                Ok(None) => assert_eq!(close(&mut disk, "a"), Ok("closed")),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn wherever_a_closer_dies_another_close_is_the_end_of_it() {
    for how in How::ALL {
        for k in 0.. {
            let mut disk = one_slot();
            open(&mut disk, "a", 1, None).expect("it works");
            disk.fail_at(k, how);
            let closed = close(&mut disk, "a");
            assert_eq!(disk.open_handles(), 0);
            if disk.is_armed() {
                break;
            }
            assert_eq!(closed, Err(Fault));
            let again = close(&mut disk, "a").expect("nothing fails any more");
            assert!(["closed", "over", "not open"].contains(&again), "{again}");
            assert_eq!(open(&mut disk, "b", 1, None), Ok(Some(1)));
        }
    }
}

#[test]
fn wherever_a_maintainer_dies_the_attempt_is_recorded_and_the_slot_is_anybodys() {
    for how in How::ALL {
        for k in 0.. {
            let mut disk = one_slot();
            disk.fail_at(k, how);
            let maintained = maintain(&mut disk, Outcome::Succeeded, NOW_MS);
            assert_eq!(disk.open_handles(), 0);
            if disk.is_armed() {
                break;
            }
            assert_eq!(maintained, Err(Fault));
            let began = recorded(&disk, 1).state == State::Maintaining;
            let seen = view(&mut disk, 1);
            if began {
                assert_eq!(seen.record.last_outcome, Some(Outcome::Interrupted), "R17");
                assert_eq!(seen.standing, Standing::Left);
            }
            assert_eq!(open(&mut disk, "b", 1, None), Ok(Some(1)), "R16");
            if began {
                let record = recorded(&disk, 1);
                assert_eq!(record.last_outcome, Some(Outcome::Interrupted));
                assert_eq!(record.last_maintained, Some(stamp::of_ms(NOW_MS)));
            }
        }
    }
}

#[test]
fn every_outcome_is_recorded_and_keeps_the_slot_from_being_maintained_again() {
    for outcome in [
        Outcome::Succeeded,
        Outcome::Failed { exit: Some(1) },
        Outcome::TimedOut,
    ] {
        let mut disk = one_slot();
        assert_eq!(
            maintain(&mut disk, outcome, NOW_MS),
            Ok(Maintained::Ran(outcome))
        );
        assert_eq!(recorded(&disk, 1).last_outcome, Some(outcome));
        assert_eq!(view(&mut disk, 1).standing, Standing::Idle);
        assert_eq!(
            maintain(&mut disk, outcome, NOW_MS + DAY_MS - 1),
            Ok(Maintained::NotDue(stamp::of_ms(NOW_MS)))
        );
        assert_eq!(
            maintain(&mut disk, outcome, NOW_MS + DAY_MS),
            Ok(Maintained::Ran(outcome))
        );
        assert_eq!(disk.open_handles(), 0);
    }
}

#[test]
fn one_maintains_a_pool_at_a_time() {
    let mut disk = Fake::on(Image::store());
    let Ok(Some(lock)) = claim_maintenance(&mut disk, &pool()) else {
        panic!("nobody does");
    };
    assert!(matches!(claim_maintenance(&mut disk, &pool()), Ok(None)));
    end_maintenance(&mut disk, lock).expect("it works");
    assert!(matches!(claim_maintenance(&mut disk, &pool()), Ok(Some(_))));
}

#[test]
fn what_is_in_use_is_neither_maintained_nor_shed() {
    let mut disk = one_slot();
    open(&mut disk, "a", 3, None).expect("it works");
    open(&mut disk, "b", 3, None).expect("it works");
    assert!(matches!(
        maintain(&mut disk, Outcome::Succeeded, NOW_MS),
        Ok(Maintained::Taken(Why::Session(_)))
    ));
    let gone = shed(&mut disk, &pool(), 1, NOW_MS, &ticket("t"), &mut sound);
    assert_eq!(gone, Ok(vec![]));
    close(&mut disk, "a").expect("it works");
    // The other one is in use, so this is the one that is too many.
    let gone = shed(&mut disk, &pool(), 1, NOW_MS, &ticket("t"), &mut sound);
    assert_eq!(gone, Ok(vec![(1, ticket("t").nth(1))]));
    assert_eq!(disk.image().names(&Dir::Slots(pool())), [b"2".to_vec()]);
    assert_eq!(disk.open_handles(), 0);
}

#[test]
fn wherever_a_shedder_dies_the_slot_is_there_or_gone() {
    for how in How::ALL {
        for k in 0.. {
            let mut disk = one_slot();
            disk.fail_at(k, how);
            let gone = shed(&mut disk, &pool(), 0, NOW_MS, &ticket("t"), &mut sound);
            assert_eq!(disk.open_handles(), 0);
            if disk.is_armed() {
                assert_eq!(gone, Ok(vec![(1, ticket("t").nth(1))]));
                break;
            }
            assert_eq!(gone, Err(Fault));
            assert_eq!(open(&mut disk, "b", 1, None), Ok(Some(1)));
        }
    }
}

#[test]
fn what_cannot_be_read_is_left_as_it_is_and_is_nobodys() {
    // Rubbish, and what is whole and the record of another slot.
    for text in [b"{".to_vec(), Slot::new(2).encode()] {
        let mut disk = one_slot();
        disk.image_mut()
            .put(&Dir::Slot(pool(), 1).at(Name::Slot), &text);
        let before = disk.image().visible();
        assert_eq!(open(&mut disk, "a", 1, None), Ok(None));
        assert!(matches!(
            maintain(&mut disk, Outcome::Succeeded, NOW_MS),
            Ok(Maintained::Taken(Why::Damaged(_)))
        ));
        assert!(matches!(
            take_broken(&mut disk, &pool(), 1),
            Ok(Mending::Damaged(_))
        ));
        assert!(matches!(
            look_at_slot(&mut disk, &pool(), 1),
            Ok(LookSlot::Damaged(_))
        ));
        assert_eq!(disk.image().visible(), before, "R21");
        assert_eq!(disk.open_handles(), 0);
    }
}

#[test]
fn a_session_whose_slot_was_taken_away_says_so() {
    // S43: nothing is done elsewhere instead.
    let mut disk = one_slot();
    open(&mut disk, "a", 1, None).expect("it works");
    let trash = Dir::Trashed(ticket("by-hand"));
    let slot = Dir::Slot(pool(), 1);
    use state_machine::disk::{Disk, Place};
    disk.rename(&Place::Dir(slot), &Place::Dir(trash))
        .expect("it works");
    assert!(matches!(
        enter(&mut disk, &token("a")),
        Ok(Entered::Gone(_))
    ));
    assert_eq!(close(&mut disk, "a"), Ok("gone"));
    forget_session(&mut disk, &token("a")).expect("it works");
    assert_eq!(close(&mut disk, "a"), Ok("not open"));
}
