//! Putting a world together: roles in a scene, and what is special about it.

use state_machine::id::JobId;

use crate::coverage::Coverage;
use crate::machine::Nature;
use crate::mutant::Edit;
use crate::role::fetcher::Wish;
use crate::role::{Part, Role, SUPERVISORS_CLOCK_MS, Special, first_job, second_job};
use crate::rule::power::Survivors;
use crate::rule::{Rule, Sight};
use crate::scene::Scene;
use crate::web::Web;
use crate::world::{Heal, Patience, Power, World};

/// A world of these roles with nothing special about it.
pub fn world(name: &'static str, scene: Scene, roles: &[Role], crashes: u8) -> World {
    let parts = (0u8..)
        .zip(roles)
        .map(|(lane, &role)| Part::new(role, first_job(), &format!("t{lane}"), 10));
    World {
        name,
        scene,
        parts: parts.collect(),
        crashes,
        faults: 0,
        power: Power::Steady,
        straggler: None,
        nature: Nature::default(),
        patience: Patience::Fair,
        heal: Heal::AtRest,
        web: Web::default(),
        sights: Vec::new(),
        large: false,
        breaks: None,
        panics: false,
        edit: None,
        coverage: Coverage::default(),
        survivors: Survivors::default(),
    }
}

impl World {
    /// With these sights, which must all be seen.
    #[must_use]
    pub fn seeing(mut self, sights: &[Sight]) -> World {
        self.sights = sights.to_vec();
        self
    }

    /// Asked in every state whether it heals alone.
    #[must_use]
    pub fn healing_everywhere(mut self) -> World {
        self.heal = Heal::Everywhere;
        self
    }

    /// Where so many effects may fail.
    #[must_use]
    pub fn failing(mut self, faults: u8) -> World {
        self.faults = faults;
        self.with_syncs()
    }

    /// Where everything is looked at that a loss of power may leave.
    #[must_use]
    pub fn judged_for_power(mut self) -> World {
        self.power = Power::Judged;
        self.with_syncs()
    }

    /// Where power may be lost once, and those who have not begun go on after the boot.
    #[must_use]
    pub fn losing_power(mut self) -> World {
        self.power = Power::Lost;
        self.with_syncs()
    }

    /// Where the last one begins only after the boot.
    #[must_use]
    pub fn the_last_after_boot(mut self) -> World {
        if let Some(last) = self.parts.last_mut() {
            last.after_boot = true;
        }
        self
    }

    /// Where each begins only when those before it are over.
    #[must_use]
    pub fn one_after_the_other(mut self) -> World {
        for part in &mut self.parts {
            part.after_others = true;
        }
        self
    }

    fn with_syncs(mut self) -> World {
        for part in &mut self.parts {
            part.syncs = true;
        }
        self
    }

    /// Where those who close a session that is not their own close this one.
    #[must_use]
    pub fn closing(mut self, token: &'static str) -> World {
        for part in &mut self.parts {
            part.closes = token;
        }
        self
    }

    /// Where the pool is to have so many slots.
    #[must_use]
    pub fn with_slots(mut self, slots: u32) -> World {
        for part in &mut self.parts {
            part.slots = slots;
        }
        self
    }

    /// Where the first worker that can be forked was forked for this job by a supervisor that died then.
    #[must_use]
    pub fn with_straggler(mut self, job: JobId) -> World {
        self.straggler = Some(job);
        self
    }

    /// Where those who queue have made their jobs before anyone moves.
    #[must_use]
    pub fn with_their_jobs_made(mut self) -> World {
        for part in &mut self.parts {
            part.special = Special::Made;
        }
        self
    }

    /// Where commands may fail, and are tried a second time. The scene's job must be one that is.
    #[must_use]
    pub fn retrying(mut self) -> World {
        self.nature.failing = true;
        self
    }

    /// Where the process of the first lane has a clock of its own.
    #[must_use]
    pub fn with_a_clock_of_its_own(mut self) -> World {
        if let Some(first) = self.parts.first_mut() {
            first.now_ms = SUPERVISORS_CLOCK_MS;
        }
        self
    }

    /// Where the process of this lane is about the second job.
    #[must_use]
    pub fn about_the_second(mut self, lane: usize) -> World {
        self.parts[lane].job = second_job();
        self
    }

    /// Where the trees are like this.
    #[must_use]
    pub fn with_trees(mut self, nature: Nature) -> World {
        self.nature = nature;
        self
    }

    /// Where this is to be fetched.
    #[must_use]
    pub fn fetching(mut self, wish: Wish) -> World {
        for part in &mut self.parts {
            part.wish = wish;
        }
        self
    }

    /// Where the server replaces its files once.
    #[must_use]
    pub fn changing(mut self) -> World {
        self.web.may_change = true;
        self
    }

    /// Where so many of the server's answers are cut.
    #[must_use]
    pub fn cutting(mut self, cuts: u8) -> World {
        self.web.cuts_left = cuts;
        self
    }

    /// Where this is wrong about the protocols.
    #[must_use]
    pub fn edited(mut self, edit: Edit) -> World {
        self.edit = Some(edit);
        // What survives under the right protocols need not survive under these.
        self.survivors = Survivors::default();
        self.coverage = Coverage::default();
        for part in &mut self.parts {
            part.edit = Some(edit);
        }
        self
    }

    /// Where those who give way do not wait.
    #[must_use]
    pub fn impatient(mut self) -> World {
        self.patience = Patience::None;
        self
    }

    /// In which this rule is broken.
    #[must_use]
    pub fn breaking(mut self, rule: Rule) -> World {
        self.breaks = Some(rule);
        self
    }

    /// In which checked code panics.
    #[must_use]
    pub fn panicking(mut self) -> World {
        self.panics = true;
        self
    }

    /// Too big for the ordinary tests.
    #[must_use]
    pub fn large(mut self) -> World {
        self.large = true;
        self
    }
}
