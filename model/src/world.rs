//! The checked world: processes that take one effect at a time on one machine, in every order, and die at every
//! point.

use stateright::{Model, Property};

use crate::effect::Effect;
use crate::filesystem::Owner;
use crate::guard::guarded;
use crate::machine::Machine;
use crate::process::{Process, Progress};
use crate::role::Part;
use crate::rule::{Broken, Rule, Sight, properties, rest, step};
use crate::scene::Scene;

/// How long a process that gives way waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Until nobody is in the way of the lock that it was refused but those who sleep with it: everybody else
    /// is quick, and nobody is starved (R5).
    Fair,
    /// Not at all: others may stand still for as long as it tries.
    None,
}

/// When a state is asked whether it heals alone (R22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heal {
    /// When nobody moves any more.
    AtRest,
    /// In every state: everyone dies at once.
    Everywhere,
}

/// A configuration: everything that is checked, and nothing hidden.
#[derive(Clone, Debug)]
pub struct World {
    /// Its name on the command line and in the golden file.
    pub name: &'static str,
    /// What is there before anyone moves.
    pub scene: Scene,
    /// One process each.
    pub parts: Vec<Part>,
    /// How many processes may die.
    pub crashes: u8,
    /// How long those who give way wait.
    pub patience: Patience,
    /// When healing is asked for.
    pub heal: Heal,
    /// What must be seen.
    pub sights: Vec<Sight>,
    /// Whether it is too big for the ordinary tests.
    pub large: bool,
    /// The rule that must be found broken: in a mutant always, elsewhere until the protocol is mended.
    pub breaks: Option<Rule>,
}

/// A state of the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Files and trees.
    pub machine: Machine,
    /// The processes, by lane.
    pub processes: Vec<Process>,
    /// How many more may die.
    pub crashes_left: u8,
    /// The rules that were broken on the way here. Nothing follows a state in which one is.
    pub broken: Vec<Broken>,
}

/// What can happen next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The process of this lane takes its next effect.
    Step(u8),
    /// The process of this lane is killed before its next effect.
    Die(u8),
    /// The process of this lane is killed in the middle of its next effect.
    DieHalfway(u8),
    /// The tree that the process of this lane started ends.
    TreeEnds(u8),
}

impl Action {
    /// Whose action it is.
    pub fn lane(&self) -> u8 {
        match *self {
            Action::Step(lane)
            | Action::Die(lane)
            | Action::DieHalfway(lane)
            | Action::TreeEnds(lane) => lane,
        }
    }
}

impl State {
    /// Whether the rule was not broken.
    pub fn keeps(&self, rule: Rule) -> bool {
        self.broken.iter().all(|broken| broken.rule != rule)
    }

    /// Whether every process has ended or died.
    pub fn is_at_rest(&self) -> bool {
        self.processes
            .iter()
            .all(|process| process.wants().is_none())
    }

    fn process(&mut self, lane: u8) -> &mut Process {
        &mut self.processes[usize::from(lane)]
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            machine: self.scene.machine(),
            processes: self.parts.iter().map(Process::new).collect(),
            crashes_left: self.crashes,
            broken: Vec::new(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if !state.broken.is_empty() {
            return;
        }
        for (lane, process) in (0u8..).zip(&state.processes) {
            let Some(effect) = process.wants() else {
                continue;
            };
            if self.is_ready(state, lane) {
                actions.push(Action::Step(lane));
            }
            // Who dies before the first step might as well not be there.
            if state.crashes_left > 0 && process.is_under_way() {
                actions.push(Action::Die(lane));
                if state.machine.files.has_halves(effect) {
                    actions.push(Action::DieHalfway(lane));
                }
            }
        }
        let trees = state.machine.trees().iter();
        actions.extend(trees.map(|tree| Action::TreeEnds(tree.lane)));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let next = guarded(|| self.after(state, &action));
        Some(next.unwrap_or_else(|words| {
            let mut poisoned = state.clone();
            poisoned.broken.push(Rule::NoPanic.broken(words));
            poisoned
        }))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = properties();
        all.extend(self.sights.iter().map(|sight| sight.property()));
        all
    }

    fn format_action(&self, action: &Action) -> String {
        let lane = action.lane();
        let who = match self.parts.get(usize::from(lane)) {
            Some(part) => format!("{lane} {}", part.role.word()),
            None => "before".into(),
        };
        match action {
            Action::Step(_) => who,
            Action::Die(_) => format!("{who} dies"),
            Action::DieHalfway(_) => format!("{who} dies half way"),
            Action::TreeEnds(_) => format!("{who}: its tree ends"),
        }
    }

    fn format_step(&self, last: &State, action: Action) -> Option<String> {
        let what = crate::trace::describe(last, &action);
        let next = self.next_state(last, action)?;
        Some(format!("{what}\n{:#?}\n{:#?}", next.broken, next.machine))
    }
}

impl World {
    /// The state that an action leads to.
    fn after(&self, state: &State, action: &Action) -> State {
        let mut next = state.clone();
        match *action {
            Action::Step(lane) => self.step(state, &mut next, lane),
            Action::Die(lane) => die(&mut next, lane),
            Action::DieHalfway(lane) => {
                if let Some(effect) = state.processes[usize::from(lane)].wants() {
                    next.machine.files.apply_half(effect);
                }
                die(&mut next, lane);
            }
            Action::TreeEnds(lane) => next.machine.end_tree(lane),
        }
        next.machine.files.renumber();
        self.watch_for_readers(&mut next);
        next.broken.extend(step::in_state(state, &next));
        if next.is_at_rest() {
            next.broken.extend(rest::at_rest(self, &next));
        } else if self.heal == Heal::Everywhere {
            next.broken.extend(rest::heals(&next));
        }
        if next.broken.is_empty() && self.is_stuck(&next) {
            next.broken.push(Rule::NotStuck.broken("nobody can move"));
        }
        next
    }

    fn step(&self, state: &State, next: &mut State, lane: u8) {
        let part = &self.parts[usize::from(lane)];
        let before = &state.processes[usize::from(lane)];
        let Some(effect) = before.wants() else { return };
        let reader = part.role.is_reader();
        if reader && !before.is_under_way() {
            next.process(lane).truths = step::bit(state.machine.files.truth(&part.job));
        }
        let reply = next.machine.apply(lane, effect);
        let judged = step::by_effect(state, lane, effect, &reply);
        next.broken.extend(judged);
        next.process(lane).take(part, reply);
        if let Progress::Ended(_) = next.process(lane).progress {
            let judged = step::by_outcome(next.process(lane), reader);
            next.broken.extend(judged);
            next.process(lane).truths = 0;
            if next.machine.files.has_open(Owner::Process(lane)) {
                let leak = Rule::Handles.broken("a file is left open");
                next.broken.push(leak);
            }
            next.machine.end_process(lane);
        }
    }

    /// Note for every reader that is looking what is true now.
    fn watch_for_readers(&self, next: &mut State) {
        for (process, part) in next.processes.iter_mut().zip(&self.parts) {
            if part.role.is_reader() && process.is_under_way() {
                process.truths |= step::bit(next.machine.files.truth(&part.job));
            }
        }
    }

    /// Whether the process of a lane would get an answer now.
    fn is_ready(&self, state: &State, lane: u8) -> bool {
        let wants = |lane: u8| state.processes.get(usize::from(lane))?.wants();
        let is_quick = |who| match who {
            Owner::Process(lane) => {
                wants(lane).is_some_and(|effect| !state.machine.is_asleep(lane, effect))
            }
            Owner::Tree(_) => false,
        };
        match wants(lane) {
            None => false,
            Some(Effect::GiveWay(_)) if self.patience == Patience::Fair => {
                let mut others = state.machine.files.in_the_way_of(Owner::Process(lane));
                !others.any(is_quick)
            }
            Some(effect) => !state.machine.is_asleep(lane, effect),
        }
    }

    fn is_stuck(&self, state: &State) -> bool {
        let mut lanes = (0u8..).take(state.processes.len());
        let can_move = lanes.any(|lane| self.is_ready(state, lane));
        !can_move && state.machine.trees().is_empty() && !state.is_at_rest()
    }
}

fn die(next: &mut State, lane: u8) {
    next.process(lane).die();
    next.machine.end_process(lane);
    next.crashes_left -= 1;
}
