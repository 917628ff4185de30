//! Small file systems to fill up. They need root; where that is not given, tests say so and are skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::until::until;

/// A small file system in memory, unmounted when it is dropped.
#[derive(Debug)]
pub struct TmpFs(PathBuf);

impl TmpFs {
    /// Mount one of `size` (as mount(8) reads it) at `at`, which is made. `None`, with the reason printed, where that
    /// is not allowed.
    pub fn mount(at: &Path, size: &str) -> Option<TmpFs> {
        std::fs::create_dir_all(at).ok()?;
        let options = format!("size={size},mode=0700");
        let ran = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "outlive-test"])
            .arg(at)
            .output();
        match ran {
            Ok(output) if output.status.success() => Some(TmpFs(at.to_owned())),
            Ok(output) => {
                println!(
                    "skipped: no tmpfs: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
                None
            }
            Err(error) => {
                println!("skipped: no mount(8): {error}");
                None
            }
        }
    }

    /// Remount it with these options: `ro`, `rw`. It is asked for again while somebody has a file of it open for writing: a
    /// process that is gone may have closed its files a little later.
    ///
    /// # Panics
    ///
    /// When that fails.
    #[track_caller]
    pub fn remount(&self, options: &str) {
        until(&format!("remount {options}"), || {
            let ran = Command::new("mount")
                .args(["-o", &format!("remount,{options}")])
                .arg(&self.0)
                .output();
            ran.is_ok_and(|output| output.status.success())
        });
    }

    /// Cover it with a read-only view of itself: whoever opens a path from now on cannot write, whatever is open
    /// already. (A file system with files open for writing cannot be made read-only itself.)
    ///
    /// # Panics
    ///
    /// When that fails.
    pub fn cover(&self) -> Cover {
        let mount = |arguments: &[&str]| {
            let ran = Command::new("mount").args(arguments).arg(&self.0).status();
            assert!(ran.is_ok_and(|status| status.success()), "{arguments:?}");
        };
        let at = self.0.to_str().expect("the path of a bench is text");
        mount(&["--bind", at]);
        let cover = Cover(self.0.clone());
        mount(&["-o", "remount,ro,bind"]);
        cover
    }

    /// Fill it to the last byte with a file of this name.
    pub fn fill(&self, name: &str) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.0.join(name)).expect("there is room for a name");
        for chunk in [65536, 4096, 512, 1] {
            while file.write_all(&vec![b'x'; chunk]).is_ok() {}
        }
    }
}

impl Drop for TmpFs {
    fn drop(&mut self) {
        // Whatever still runs there holds it; it goes when that does.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A read-only cover over a file system, taken off when it is dropped.
#[derive(Debug)]
pub struct Cover(PathBuf);

impl Drop for Cover {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
