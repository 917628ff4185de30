//! Which jobs a stop takes, and in which order: what needs something ends before that does.

use std::collections::BTreeSet;

use state_machine::protocol::look::View;

use super::Tasks;
use crate::store::{Job, Store};

impl Tasks {
    /// The jobs to stop for these tasks, in rounds: those of one round are stopped side by side, and nothing of them is needed by a
    /// later one.
    pub(crate) fn rounds(
        &self,
        store: &Store,
        views: &[View],
        named: &[&str],
        only: bool,
    ) -> Vec<Vec<Job>> {
        let going: Vec<&View> = views.iter().filter(|view| is_going(view)).collect();
        let tasks = self.project.tasks.keys().map(String::as_str);
        let running: BTreeSet<&str> = tasks
            .filter(|task| going.iter().any(|view| self.is_of(view, task)))
            .collect();
        let stops = if only {
            named.to_vec()
        } else {
            self.project.to_stop(named, &running)
        };
        let jobs = |task: &str| {
            let of_task = going.iter().filter(|view| self.is_of(view, task));
            of_task
                .map(|view| store.job(&view.descriptor.id))
                .collect::<Vec<_>>()
        };
        self.layers(&stops)
            .into_iter()
            .map(|layer| layer.into_iter().flat_map(jobs).collect())
            .filter(|round: &Vec<Job>| !round.is_empty())
            .collect()
    }

    /// All jobs of the project, in rounds: first those of no task, then the tasks.
    pub(crate) fn rounds_of_all(&self, store: &Store, views: &[View]) -> Vec<Vec<Job>> {
        let is_of_none = |view: &&View| {
            let task = view.descriptor.task.as_deref();
            is_going(view)
                && self.holds(view)
                && task.is_none_or(|task| !self.project.tasks.contains_key(task))
        };
        let others: Vec<Job> = views
            .iter()
            .filter(is_of_none)
            .map(|view| store.job(&view.descriptor.id))
            .collect();
        let all: Vec<&str> = self.project.tasks.keys().map(String::as_str).collect();
        let mut rounds = self.rounds(store, views, &all, false);
        if !others.is_empty() {
            rounds.insert(0, others);
        }
        rounds
    }

    /// Tasks by how far they are from what needs nothing of them: each layer is needed by earlier ones only.
    fn layers<'a>(&self, stops: &[&'a str]) -> Vec<Vec<&'a str>> {
        let mut left: Vec<&'a str> = stops.to_vec();
        let mut layers = Vec::new();
        while !left.is_empty() {
            let is_needed = |task: &str| {
                left.iter()
                    .filter_map(|other| self.project.tasks.get(*other))
                    .any(|other| other.needs.iter().any(|need| need == task))
            };
            let (needed, free): (Vec<&str>, Vec<&str>) =
                left.iter().copied().partition(|task| is_needed(task));
            layers.push(free);
            left = needed;
        }
        layers
    }
}

/// Whether there is something of the job to stop.
fn is_going(view: &View) -> bool {
    !view.state.is_terminal() || view.leftovers
}
