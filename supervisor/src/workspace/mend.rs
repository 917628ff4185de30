//! Repairing a worktree that is all there, and only points to where its repository was, or is registered for where it was itself.

use super::place::{Occupant, Standing, occupant, repository};
use super::{Hands, Judgement, Trouble, Workspace};

impl Workspace {
    /// Have git write anew what leads from the worktree to its repository and back, after one of them was moved. Nothing else is
    /// touched; what it is then is said.
    pub(crate) fn mend(&self, hands: &mut Hands<'_>) -> Result<Judgement, Trouble> {
        if let Some(source) = self.repository_dir() {
            let mut git = self.git(hands);
            let repository = repository(&mut git, source)?;
            if let (Standing::Differs(how), Occupant::Linked(_)) =
                (self.standing(&repository)?, occupant(self.dir())?)
            {
                if repository.is_in_use_elsewhere(self)? {
                    return Ok(Judgement::Broken(how));
                }
                let repair = [
                    "worktree".as_ref(),
                    "repair".as_ref(),
                    "--".as_ref(),
                    self.dir().as_os_str(),
                ];
                git.change(source, &repair)?;
            }
        }
        Ok(self.judge(hands))
    }
}
