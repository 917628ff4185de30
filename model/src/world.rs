//! The checked world: processes that take one effect at a time on one machine, in every order, and die at every
//! point.

use state_machine::disk::Open;
use state_machine::id::JobId;
use stateright::{Model, Property};

use crate::alone::LANE;
use crate::coverage::Coverage;
use crate::effect::{Effect, Reply};
use crate::filesystem::Owner;
use crate::guard::guarded;
use crate::machine::{Machine, Nature, Sources};
use crate::mutant::Edit;
use crate::process::{Process, Progress};
use crate::role::Part;
use crate::rule::power::{self, Survivors};
use crate::rule::{Broken, Rule, Sight, properties, pull, queue, rest, slot, step};
use crate::scene::Scene;
use crate::web::Web;

/// How many effects a process may take for one operation: each is bounded, whoever is in its way.
const EFFECTS: usize = 400;

/// How long a process that gives way waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Until nobody is in the way of the lock that it was refused but those who sleep with it: everybody else
    /// is quick, and nobody is starved (R5).
    Fair,
    /// Not at all: others may stand still for as long as it tries.
    None,
}

/// What is done about losses of power (R19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// There are none.
    Steady,
    /// In every state, everything that a loss may leave is looked at and healed.
    Judged,
    /// The same, and one loss may happen: whoever has not begun by then begins after the boot.
    Lost,
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
    /// How many effects may fail, or be denied.
    pub faults: u8,
    /// What is done about losses of power.
    pub power: Power,
    /// The job that a worker was forked for before anyone moves, by a supervisor that is gone.
    pub straggler: Option<JobId>,
    /// What the trees of commands are like.
    pub nature: Nature,
    /// How long those who give way wait.
    pub patience: Patience,
    /// When healing is asked for.
    pub heal: Heal,
    /// The server that files are fetched from, as it is before anyone moves.
    pub web: Web,
    /// What must be seen.
    pub sights: Vec<Sight>,
    /// Whether it is too big for the ordinary tests.
    pub large: bool,
    /// The rule that must be found broken, in a world in which something is wrong.
    pub breaks: Option<Rule>,
    /// Whether checked code panics in it before that is found, so that only a build that unwinds can run it.
    pub panics: bool,
    /// What is wrong about the protocols.
    pub edit: Option<Edit>,
    /// What has been reached so far. No part of any state.
    pub coverage: Coverage,
    /// What was found to survive every loss of power. No part of any state.
    pub survivors: Survivors,
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
    /// How many more effects may fail.
    pub faults_left: u8,
    /// Whether power may still be lost.
    pub may_lose_power: bool,
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
    /// The next effect of the process of this lane fails, and does nothing.
    Fail(u8),
    /// The same, and it has done what can be done before it fails.
    FailHalfway(u8),
    /// What the process of this lane is about to open is denied to it.
    Deny(u8),
    /// The command that the process of this lane started ends, or what that has left.
    TreeEnds(u8),
    /// The command that the process of this lane started fails.
    CommandFails(u8),
    /// What commands are made of changes.
    SourcesChange,
    /// What the server sends to the process of this lane is cut, or nothing comes.
    Cut(u8),
    /// The files on the server are replaced by another version.
    ServerChanges,
    /// Power is lost: every process is gone, and of what was not synced this outcome survives.
    LosePower(u32),
}

impl Action {
    /// Whose action it is, unless it is everybody's.
    pub fn lane(&self) -> Option<u8> {
        match *self {
            Action::Step(lane)
            | Action::Die(lane)
            | Action::DieHalfway(lane)
            | Action::Fail(lane)
            | Action::FailHalfway(lane)
            | Action::Deny(lane)
            | Action::CommandFails(lane)
            | Action::Cut(lane)
            | Action::TreeEnds(lane) => Some(lane),
            Action::ServerChanges | Action::SourcesChange | Action::LosePower(_) => None,
        }
    }
}

impl State {
    /// Whether the rule was not broken.
    pub fn keeps(&self, rule: Rule) -> bool {
        self.broken.iter().all(|broken| broken.rule != rule)
    }

    /// Whether every process has ended or died, or waits to be forked, or for workers where there are none.
    pub fn is_at_rest(&self) -> bool {
        (0u8..).zip(&self.processes).all(|(lane, process)| {
            let rests = |effect: &Effect| match effect {
                Effect::AwaitErrand => self.machine.errand_of(lane).is_none(),
                Effect::Fork(_) => self.machine.has_no_workers(),
                _ => false,
            };
            process.wants().is_none_or(rests)
        })
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
            machine: self.machine(),
            processes: self.parts.iter().map(Process::new).collect(),
            crashes_left: self.crashes,
            faults_left: self.faults,
            may_lose_power: self.power == Power::Lost,
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
                if state.machine.files.has_halves(effect) || effect.half_poured().is_some() {
                    actions.push(Action::DieHalfway(lane));
                }
            }
            if state.machine.web.cuts_left > 0 && is_sent(effect) {
                actions.push(Action::Cut(lane));
            }
            if state.faults_left > 0 {
                failures(state, lane, effect, actions);
            }
        }
        let trees = state.machine.trees().iter();
        actions.extend(trees.clone().map(|tree| Action::TreeEnds(tree.lane)));
        if self.nature.failing {
            // Who has no worker any more ends unseen, and it does not matter how.
            let seen = trees.filter(|tree| {
                let worker = state.processes.get(usize::from(tree.lane));
                tree.command && worker.is_some_and(Process::is_under_way)
            });
            actions.extend(seen.map(|tree| Action::CommandFails(tree.lane)));
        }
        if state.machine.sources == Sources::MayChange && !state.machine.trees().is_empty() {
            actions.push(Action::SourcesChange);
        }
        if state.machine.web.may_change && state.processes.iter().any(Process::is_under_way) {
            actions.push(Action::ServerChanges);
        }
        if state.may_lose_power && state.processes.iter().any(Process::has_begun) {
            let images = state.machine.files.images().len() as u32;
            actions.extend((0..images).map(Action::LosePower));
        }
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
        let Some(lane) = action.lane() else {
            return match action {
                Action::ServerChanges => "the server changes".into(),
                Action::SourcesChange => "what commands are made of changes".into(),
                _ => "power is lost".into(),
            };
        };
        let who = match self.parts.get(usize::from(lane)) {
            Some(part) => format!("{lane} {}", part.role.word()),
            None => "before".into(),
        };
        match action {
            Action::Step(_)
            | Action::ServerChanges
            | Action::SourcesChange
            | Action::LosePower(_) => who,
            Action::Cut(_) => format!("{who} is cut"),
            Action::Fail(_) => format!("{who} fails"),
            Action::FailHalfway(_) => format!("{who} fails half way"),
            Action::Deny(_) => format!("{who} is denied"),
            Action::Die(_) => format!("{who} dies"),
            Action::DieHalfway(_) => format!("{who} dies half way"),
            Action::TreeEnds(_) => format!("{who}: its tree ends"),
            Action::CommandFails(_) => format!("{who}: its command fails"),
        }
    }

    fn format_step(&self, last: &State, action: Action) -> Option<String> {
        let what = crate::trace::describe(last, &action);
        let next = self.next_state(last, action)?;
        Some(format!("{what}\n{:#?}\n{:#?}", next.broken, next.machine))
    }
}

impl World {
    /// The machine before anyone moves.
    fn machine(&self) -> Machine {
        let mut machine = self.scene.machine(self.nature, self.power != Power::Steady);
        machine.web = self.web;
        if self.nature.renewing {
            machine.sources = Sources::MayChange;
        }
        for (lane, part) in (0u8..).zip(&self.parts) {
            if part.role.is_forked() {
                machine.offer_worker(lane);
            }
        }
        if let Some(job) = &self.straggler {
            machine.fork(LANE, job);
            machine.end_process(LANE);
        }
        machine
    }

    /// The state that an action leads to.
    fn after(&self, state: &State, action: &Action) -> State {
        let mut next = state.clone();
        match *action {
            Action::Step(lane) => self.step(state, &mut next, lane),
            Action::Die(lane) => die(&mut next, lane),
            Action::DieHalfway(lane) => {
                if let Some(effect) = state.processes[usize::from(lane)].wants() {
                    match effect.half_poured() {
                        Some(half) => drop(next.machine.apply(lane, &half)),
                        None => next.machine.files.apply_half(effect),
                    }
                }
                die(&mut next, lane);
            }
            Action::Fail(lane) => self.fail(&mut next, lane, Reply::Failed),
            Action::FailHalfway(lane) => {
                if let Some(effect) = state.processes[usize::from(lane)].wants() {
                    next.machine.files.apply_failure(effect);
                }
                self.fail(&mut next, lane, Reply::Failed);
            }
            Action::Deny(lane) => self.fail(&mut next, lane, Reply::Opened(Open::Denied)),
            Action::Cut(lane) => self.cut(&mut next, lane),
            Action::ServerChanges => next.machine.web.change(),
            Action::SourcesChange => next.machine.sources = Sources::Changed,
            Action::TreeEnds(lane) => next.machine.end_command(lane),
            Action::CommandFails(lane) => next.machine.fail_command(lane),
            Action::LosePower(outcome) => {
                let mut images = state.machine.files.images();
                next = power::reboot(&next, images.swap_remove(outcome as usize));
            }
        }
        next.machine.files.renumber();
        self.watch_for_readers(&mut next);
        next.broken.extend(step::in_state(&next));
        next.broken.extend(queue::in_state(&next));
        let judged = slot::in_state(self, &next);
        next.broken.extend(judged);
        next.broken.extend(pull::in_state(self, &next));
        if !matches!(action, Action::LosePower(_)) {
            // What a loss of power does was judged before it happened.
            let booted = self.power == Power::Lost && !next.may_lose_power;
            next.broken.extend(step::changed(state, &next, booted));
            next.broken.extend(power::judge(self, &next));
        }
        if next.is_at_rest() {
            next.broken.extend(rest::at_rest(self, &next));
        } else if self.heal == Heal::Everywhere {
            next.broken.extend(rest::heals(self, &next));
        }
        if next.broken.is_empty() && self.is_stuck(&next) {
            next.broken.push(Rule::NotStuck.broken("nobody can move"));
        }
        next
    }

    fn step(&self, state: &State, next: &mut State, lane: u8) {
        let part = &self.parts[usize::from(lane)];
        let before = &state.processes[usize::from(lane)];
        let Some(wanted) = before.wanted() else {
            return;
        };
        let effect = &wanted.effect;
        let reader = part.role.is_reader();
        if reader && !before.is_under_way() {
            next.process(lane).truths = step::bit(state.machine.files.truth(&part.job));
        }
        if part.role.is_onlooker() && !before.is_under_way() {
            next.process(lane).truths = slot::bit(slot::truth(&state.machine.files));
        }
        let reply = next.machine.apply(lane, effect);
        self.coverage.note(wanted, &reply);
        let judged = step::by_effect(state, lane, effect, &reply);
        next.broken.extend(judged);
        next.broken.extend(queue::by_effect(self, state, effect));
        next.broken
            .extend(slot::by_effect(self, state, lane, effect, &reply));
        next.broken
            .extend(pull::by_effect(self, state, lane, effect));
        self.tell(next, lane, reply);
    }

    /// The next effect of a process comes to this failure.
    fn fail(&self, next: &mut State, lane: u8, reply: Reply) {
        next.faults_left -= 1;
        if let Some(wanted) = next.process(lane).wanted() {
            self.coverage.note(wanted, &reply);
        }
        self.tell(next, lane, reply);
    }

    /// The server's answer to a process is cut: none comes, or no further block.
    fn cut(&self, next: &mut State, lane: u8) {
        next.machine.web.cuts_left -= 1;
        let Some(wanted) = next.process(lane).wanted() else {
            return;
        };
        let reply = match wanted.effect {
            Effect::Ask(_) => Reply::Counted(0),
            _ => Reply::Is(false),
        };
        self.coverage.note(wanted, &reply);
        self.tell(next, lane, reply);
    }

    /// Let a process take a reply in, and judge what it came to if it is at its end.
    fn tell(&self, next: &mut State, lane: u8, reply: Reply) {
        let part = &self.parts[usize::from(lane)];
        let smooth = next.faults_left == self.faults;
        next.process(lane).take(part, reply);
        let process = &next.processes[usize::from(lane)];
        match process.progress {
            Progress::Ended(_) => {
                let end = step::End {
                    part,
                    files: &next.machine.files,
                    smooth,
                    scene: self.scene,
                    failing: self.nature.failing,
                };
                let judged = step::by_outcome(process, end);
                next.broken.extend(judged);
                let judged = pull::by_outcome(self, next, lane, smooth);
                next.broken.extend(judged);
                next.process(lane).truths = 0;
                // From here on the job is in other hands, and its id may come to be another's.
                next.process(lane).standing.ended = None;
                // What was open when an error was met is dropped, which closes it too (F2).
                if smooth && next.machine.files.has_open(Owner::Process(lane)) {
                    let leak = Rule::Handles.broken("a file is left open");
                    next.broken.push(leak);
                }
                next.machine.end_process(lane);
                if part.role.is_forked() {
                    // Another one stands ready in its lane.
                    *next.process(lane) = Process::new(part);
                    next.machine.offer_worker(lane);
                }
            }
            Progress::Wants(..) if process.age() > EFFECTS => {
                next.broken
                    .push(Rule::Bounded.broken("it goes on for ever"));
            }
            _ => {}
        }
    }

    /// Whether anybody in it does something about slots.
    pub fn is_about_slots(&self) -> bool {
        self.parts.iter().any(|part| part.role.is_about_slots())
    }

    /// Whether anybody in it fetches files.
    pub fn is_about_pulls(&self) -> bool {
        self.parts.iter().any(|part| part.role.is_about_pulls())
    }

    /// Note for every reader that is looking what is true now.
    fn watch_for_readers(&self, next: &mut State) {
        for (process, part) in next.processes.iter_mut().zip(&self.parts) {
            if part.role.is_reader() && process.is_under_way() {
                process.truths |= step::bit(next.machine.files.truth(&part.job));
            }
            if part.role.is_onlooker() && process.is_under_way() {
                process.truths |= slot::bit(slot::truth(&next.machine.files));
            }
        }
    }

    /// Whether the process of a lane would get an answer now.
    fn is_ready(&self, state: &State, lane: u8) -> bool {
        let wants = |lane: u8| state.processes.get(usize::from(lane))?.wants();
        let is_quick = |who| match who {
            Owner::Process(lane) => wants(lane).is_some_and(|effect| {
                let waits = matches!(effect, Effect::BackOff(_));
                !waits && !state.machine.is_asleep(lane, effect)
            }),
            Owner::Tree(_) => false,
        };
        let waits_for_boot = self
            .parts
            .get(usize::from(lane))
            .is_some_and(|part| part.after_boot && state.may_lose_power);
        let waits_for_others = self.parts.get(usize::from(lane)).is_some_and(|part| {
            let mut before = state.processes.iter().take(usize::from(lane));
            part.after_others && before.any(|process| process.wants().is_some())
        });
        match wants(lane) {
            None => false,
            _ if waits_for_boot || waits_for_others => false,
            Some(Effect::GiveWay(_)) if self.patience == Patience::Fair => {
                let mut others = state.machine.files.in_the_way_of(Owner::Process(lane));
                !others.any(is_quick)
            }
            Some(Effect::WaitForHands) => !self.hands_are_at_work(state),
            Some(effect) => !state.machine.is_asleep(lane, effect),
        }
    }

    /// Whether somebody is between the two steps of writing a request by hand.
    fn hands_are_at_work(&self, state: &State) -> bool {
        let mut both = self.parts.iter().zip(&state.processes);
        both.any(|(part, process)| part.role.is_hand() && process.is_under_way())
    }

    fn is_stuck(&self, state: &State) -> bool {
        let mut lanes = (0u8..).take(state.processes.len());
        let can_move = lanes.any(|lane| self.is_ready(state, lane));
        let may_boot = state.may_lose_power;
        !can_move && !may_boot && state.machine.trees().is_empty() && !state.is_at_rest()
    }
}

/// Whether it is an effect for which a server has to send something.
fn is_sent(effect: &Effect) -> bool {
    matches!(effect, Effect::Ask(_) | Effect::Pour(..))
}

/// What can go wrong with the effect that the process of a lane wants.
fn failures(state: &State, lane: u8, effect: &Effect, actions: &mut Vec<Action>) {
    if effect.can_fail() {
        actions.push(Action::Fail(lane));
        if state.machine.files.has_halves(effect) || matches!(effect, Effect::Sync(_)) {
            actions.push(Action::FailHalfway(lane));
        }
    }
    // What is not there cannot be denied.
    if let Effect::Open(place, _) = effect
        && state.machine.files.has(place)
    {
        actions.push(Action::Deny(lane));
    }
}

fn die(next: &mut State, lane: u8) {
    next.process(lane).die();
    next.machine.end_process(lane);
    next.crashes_left -= 1;
}
