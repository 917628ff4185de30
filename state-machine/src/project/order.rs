//! Which tasks belong together: in which order they are started, what stands in a circle, and what a stop takes with it.

use std::collections::{BTreeMap, BTreeSet};

use super::file::Project;

impl Project {
    /// These tasks and everything that they need, each after what it needs.
    pub fn in_order<'a, 'w>(&'a self, wanted: impl IntoIterator<Item = &'w str>) -> Vec<&'a str> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for name in wanted {
            self.visit(name, &mut seen, &mut order);
        }
        order
    }

    fn visit<'a>(&'a self, name: &str, seen: &mut BTreeSet<&'a str>, order: &mut Vec<&'a str>) {
        let Some((name, task)) = self.tasks.get_key_value(name) else {
            return;
        };
        // A file with a circle in it is never read; this ends even so.
        if !seen.insert(name) {
            return;
        }
        for need in &task.needs {
            self.visit(need, seen, order);
        }
        order.push(name);
    }

    /// What a stop of these tasks stops, each before what it needs: the tasks themselves and everything that they need, but for what
    /// other running tasks need.
    pub fn to_stop<'a>(&'a self, named: &[&str], running: &BTreeSet<&'a str>) -> Vec<&'a str> {
        let mut stops = self.in_order(named.iter().copied());
        let others = running.iter().filter(|task| !stops.contains(*task));
        let needed: BTreeSet<&str> = self.in_order(others.copied()).into_iter().collect();
        let is_named = |task: &str| named.contains(&task);
        stops.retain(|task| is_named(task) || !needed.contains(task));
        stops.reverse();
        stops
    }

    /// Tasks that need each other in a circle, each before the one that it needs.
    pub(super) fn circle(&self) -> Option<Vec<String>> {
        /// Whether a task is being visited, or nothing that it needs is in a circle.
        #[derive(PartialEq)]
        enum Mark {
            Open,
            Done,
        }

        fn visit<'a>(
            project: &'a Project,
            name: &'a str,
            marks: &mut BTreeMap<&'a str, Mark>,
            path: &mut Vec<&'a str>,
        ) -> Option<Vec<String>> {
            match marks.get(name) {
                Some(Mark::Done) => return None,
                Some(Mark::Open) => {
                    let start = path.iter().position(|one| *one == name).unwrap_or(0);
                    return Some(path[start..].iter().map(|&one| one.to_owned()).collect());
                }
                None => {}
            }
            marks.insert(name, Mark::Open);
            path.push(name);
            for need in project.tasks.get(name).map_or(&[][..], |task| &task.needs) {
                if let Some(circle) = visit(project, need, marks, path) {
                    return Some(circle);
                }
            }
            path.pop();
            marks.insert(name, Mark::Done);
            None
        }

        let mut marks = BTreeMap::new();
        self.tasks
            .keys()
            .find_map(|name| visit(self, name, &mut marks, &mut Vec::new()))
    }
}
