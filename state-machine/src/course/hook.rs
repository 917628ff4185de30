//! The commands that are told of a job's end. A stop does not wait for them.

use super::{Course, HookWoke, Worker};
use crate::control::Request;
use crate::job::State;
use crate::record::Bytes;

impl<W: Worker> Course<'_, W> {
    /// Run the commands that are to be told of the end, where there are some, and note how they failed. What the job left behind
    /// is looked after meanwhile. A cancel that is taken here is for that, and is answered when it is gone.
    pub(super) fn tell_hooks(
        &mut self,
        mut left_behind: Option<&mut W::Tree>,
    ) -> Result<(), W::Fault> {
        let descriptor = self.worker.descriptor();
        let on_failure = match self.worker.status().state {
            State::Failed => descriptor.on_failure.clone(),
            _ => None,
        };
        let on_end = descriptor.on_end.clone();
        for (name, argv) in [("on-failure", on_failure), ("on-end", on_end)] {
            if let Some(argv) = argv {
                self.tell_hook(name, &argv, left_behind.as_deref_mut())?;
            }
        }
        Ok(())
    }

    fn tell_hook(
        &mut self,
        name: &str,
        argv: &[Bytes],
        mut left_behind: Option<&mut W::Tree>,
    ) -> Result<(), W::Fault> {
        let told = match self.worker.start_hook(argv)? {
            Err(why) => Err(why),
            Ok(mut hook) => loop {
                if self.take()? == Some(Request::Cancel) {
                    self.worker.cut_hook_short(&mut hook)?;
                }
                let tree = left_behind.as_deref_mut();
                match self.worker.watch_hook(&mut hook, tree)? {
                    HookWoke::Over(told) => break told,
                    HookWoke::Look => {}
                    HookWoke::Show(what) => self.show(what)?,
                }
            },
        };
        if let Err(why) = told {
            self.worker.note(format!("{name} failed: {why}"))?;
        }
        Ok(())
    }
}
