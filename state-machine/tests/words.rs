//! Ids, slugs, names, keys and tickets: nothing that is made here is ever refused where it is read again, and
//! nothing leaves its directory.

use proptest::prelude::*;
use state_machine::disk;
use state_machine::id::{JobId, Key, Name, Ticket, slug};

/// The rule of the design, written down once more: what may be an entry of a directory.
fn is_component(word: &str) -> bool {
    (1..=255).contains(&word.len())
        && !word.starts_with('.')
        && !word.contains(['/', '\0'])
        && !word.chars().any(char::is_control)
}

/// Text that people and programs type: plain, odd, long, and any.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9_ -]{0,12}",
        "[./\\\\~-]{0,6}",
        "\\PC{0,60}",
        any::<String>(),
        "(?s).{0,400}",
    ]
}

/// Short texts in which everything that an escape could mistake for itself is frequent.
fn task() -> impl Strategy<Value = String> {
    "[a15f_ .ä\\-]{0,7}"
}

/// The text that `escaped` stands for, read back by a dumb twin.
fn unescaped(escaped: &str) -> String {
    escaped
        .split('_')
        .enumerate()
        .map(|(nth, part)| match nth % 2 {
            0 => part.to_owned(),
            _ => char::from_u32(u32::from_str_radix(part, 16).expect("hex"))
                .expect("a character")
                .to_string(),
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_slug_is_what_the_design_says(text in text()) {
        let slug = slug(&text);
        prop_assert!((1..=40).contains(&slug.len()), "{slug}");
        prop_assert!(slug.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
        prop_assert!(!slug.starts_with('-') && !slug.ends_with('-') && !slug.contains("--"), "{slug}");
        prop_assert_eq!(state_machine::id::slug(&slug), slug.clone());
    }

    #[test]
    fn an_id_that_is_made_is_an_id_that_is_read(text in text(), now_ms: u64, nth in 0..=JobId::COLLISIONS) {
        let id = JobId::new(now_ms, &slug(&text), nth);
        prop_assert!(is_component(id.as_str()), "{id}");
        prop_assert_eq!(JobId::parse(id.as_str()), Ok(id.clone()));
        let json = serde_json::to_string(&id).unwrap();
        prop_assert_eq!(serde_json::from_str::<JobId>(&json).unwrap(), id);
    }

    #[test]
    fn what_collides_takes_another_id(text in text(), now_ms: u64, a in 1..=JobId::COLLISIONS, b in 1..=JobId::COLLISIONS) {
        let slug = slug(&text);
        let same = JobId::new(now_ms, &slug, a) == JobId::new(now_ms, &slug, b);
        prop_assert_eq!(same, a == b);
    }

    #[test]
    fn exactly_the_components_are_taken_from_outside(text in text()) {
        prop_assert_eq!(JobId::parse(&text).is_ok(), is_component(&text));
        prop_assert_eq!(Ticket::parse(&text).is_ok(), is_component(&text));
        let json = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(serde_json::from_str::<JobId>(&json).is_ok(), is_component(&text));
        let given = is_component(&text) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        prop_assert_eq!(Name::parse(&text).is_ok(), given);
    }

    #[test]
    fn the_name_of_a_task_is_read_again_and_nobody_can_give_it(task in text(), nth: u64) {
        let Ok(name) = Name::of_task(&task, nth) else {
            // Only what is too long for a directory's entry is refused.
            prop_assert!(task.len() * 3 > 200, "{task:?}");
            return Ok(());
        };
        prop_assert!(is_component(name.as_str()), "{name}");
        prop_assert_eq!(Name::try_from(name.to_string()), Ok(name.clone()));
        prop_assert!(Name::parse(name.as_str()).is_err());
        let (escaped, number) = name.as_str().rsplit_once('-').unwrap();
        prop_assert_eq!(unescaped(escaped), task);
        prop_assert_eq!(number.parse::<u64>().unwrap(), nth);
    }

    #[test]
    fn no_two_tasks_share_a_name(a in task(), b in task(), m in 0..30u64, n in 0..30u64) {
        let same = Name::of_task(&a, m).unwrap() == Name::of_task(&b, n).unwrap();
        prop_assert_eq!(same, (a, m) == (b, n));
    }

    #[test]
    fn a_key_and_its_files_stay_in_their_directory(
        text in text(),
        given in "[a-zA-Z0-9_]{1,255}",
        project: Vec<u8>,
        path: Vec<u8>,
    ) {
        let given = Name::parse(&given).unwrap();
        let keys = [
            Key::of_name(&project, &given),
            Key::of_task(&project, &text),
            Key::of_destination(&path),
        ];
        for key in keys {
            prop_assert_eq!(Key::parse(key.as_str()), Ok(key.clone()));
            for name in [
                disk::Name::KeyLock(key.clone()),
                disk::Name::Pointer(key.clone()),
                disk::Name::NewPointer(key.clone()),
            ] {
                let text = name.to_text().unwrap();
                prop_assert!(is_component(&text), "{text}");
            }
        }
    }

    #[test]
    fn different_things_have_different_keys(
        a in "[ab]{1,2}", b in "[ab]{1,2}", p in "[ab/]{0,3}", q in "[ab/]{0,3}",
    ) {
        let key = |project: &str, word: &str| {
            let name = Name::parse(word).unwrap();
            let project = project.as_bytes();
            (Key::of_name(project, &name), Key::of_task(project, word))
        };
        let ((name_a, task_a), (name_b, task_b)) = (key(&p, &a), key(&q, &b));
        prop_assert_eq!(name_a == name_b, (&p, &a) == (&q, &b));
        prop_assert_eq!(task_a == task_b, (&p, &a) == (&q, &b));
        prop_assert_ne!(name_a, task_b);
    }

    #[test]
    fn an_entry_of_a_job_is_known_by_its_bytes(bytes in prop_oneof![
        proptest::sample::select(vec!["job.json", "status.json", "status.json.new", "events.jsonl",
            "lock", "tree", "control", "control.taken", "log"]).prop_map(|word| word.as_bytes().to_vec()),
        any::<Vec<u8>>(),
    ]) {
        prop_assert_eq!(disk::Name::in_job(&bytes).to_bytes(), bytes);
    }
}
