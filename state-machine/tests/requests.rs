//! What becomes of a control file that stays empty, and of what was taken before it.

// Only a part of it is needed here.
#[allow(dead_code)]
#[path = "support/fake.rs"]
mod fake;

use fake::{Fake, Image};
use state_machine::control::Request;
use state_machine::disk::{Disk, Name, Place};
use state_machine::id::{JobId, Ticket};
use state_machine::protocol::create::{Durable, Made, create};
use state_machine::protocol::request::{Took, discard};
use state_machine::record::Descriptor;

const DESCRIPTOR: &[u8] = br#"{"id":"1-x","kind":{"command":{"argv":["true"],"cwd":"/","env":{}}},"display_name":"x","created_at_ms":100}"#;

/// A store with a job in it, and with these bytes in its `control` and in its `control.taken`.
fn asked(control: &str, taken: Option<&str>) -> (Fake, JobId) {
    let mut disk = Fake::on(Image::store());
    let mut descriptor = Descriptor::decode(DESCRIPTOR).expect("it decodes");
    let ticket = Ticket::parse("t").expect("it is a ticket");
    let made = create(&mut disk, &mut descriptor, None, &ticket, Durable::No);
    let Ok(Made::Job(made)) = made else {
        panic!("{made:?}");
    };
    let (id, lock) = (made.id().clone(), made.into_lock());
    disk.close(lock).expect("nothing fails");
    let image = disk.image_mut();
    image.put(&Place::of_job(&id, Name::Control), control.as_bytes());
    if let Some(taken) = taken {
        image.put(&Place::of_job(&id, Name::Taken), taken.as_bytes());
    }
    (disk, id)
}

fn bytes(disk: &Fake, id: &JobId, name: Name) -> Option<String> {
    let bytes = disk.image().bytes(&Place::of_job(id, name))?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

#[test]
fn what_is_being_honoured_is_not_replaced_by_an_empty_file() {
    for request in Request::ALL {
        let word = request.to_string();
        let (mut disk, id) = asked("", Some(&word));
        assert_eq!(discard(&mut disk, &id), Ok(Took::Asked(request)), "R6");
        assert_eq!(bytes(&disk, &id, Name::Taken), Some(word), "R6");
    }
}

#[test]
fn what_was_written_meanwhile_is_honoured() {
    let (mut disk, id) = asked("cancel", None);
    assert_eq!(discard(&mut disk, &id), Ok(Took::Asked(Request::Cancel)));
    assert_eq!(bytes(&disk, &id, Name::Control), None);
    assert_eq!(bytes(&disk, &id, Name::Taken), Some("cancel".into()), "R6");
}

#[test]
fn an_empty_file_goes_and_so_does_an_empty_one_that_was_taken() {
    for taken in [None, Some("")] {
        let (mut disk, id) = asked("", taken);
        assert_eq!(discard(&mut disk, &id), Ok(Took::Nothing));
        assert_eq!(bytes(&disk, &id, Name::Control), None);
        assert_eq!(bytes(&disk, &id, Name::Taken), None);
    }
}
