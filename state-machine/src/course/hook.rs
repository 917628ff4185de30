//! The command that is told of a job's end. A stop does not wait for it.

use super::{Course, HookWoke, Worker};
use crate::control::Request;

impl<W: Worker> Course<'_, W> {
    /// Run the command that is to be told of the end, if there is one, and note how it failed. What the job left behind
    /// is looked after meanwhile. A cancel that is taken here is for that, and is answered when it is gone.
    pub(super) fn tell_hook(
        &mut self,
        mut left_behind: Option<&mut W::Tree>,
    ) -> Result<(), W::Fault> {
        if self.worker.descriptor().on_end.is_none() {
            return Ok(());
        }
        let told = match self.worker.start_hook()? {
            None => return Ok(()),
            Some(Err(why)) => Err(why),
            Some(Ok(mut hook)) => loop {
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
            self.worker.note(format!("on-end failed: {why}"))?;
        }
        Ok(())
    }
}
