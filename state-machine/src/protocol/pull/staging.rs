//! Making the directory of unfinished files.

use crate::disk::{Change, Dir, Disk, Place};

/// Make the directory of unfinished files where there is none. It survives a loss of power: else what is synced in it would not.
pub fn make_staging<D: Disk>(disk: &mut D, staging: &Dir) -> Result<Change, D::Fault> {
    let made = disk.mkdir(staging)?;
    // Whoever made it may not have come to this.
    disk.sync(&Place::Dir(above(staging)))?;
    Ok(made)
}

/// The directory that it stands in.
fn above(dir: &Dir) -> Dir {
    let Dir::Outside(path) = dir else {
        return Dir::Root;
    };
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(0) => Dir::Outside(b"/".to_vec()),
        Some(end) => Dir::Outside(path[..end].to_vec()),
        // A path that is not absolute is one beside the store.
        None => Dir::Root,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_above_is_the_path_without_its_last_name() {
        let of = |path: &str| above(&Dir::Outside(path.as_bytes().to_vec()));
        let outside = |path: &str| Dir::Outside(path.as_bytes().to_vec());
        assert_eq!(of("/srv/images/.outlive-part"), outside("/srv/images"));
        assert_eq!(of("/.outlive-part"), outside("/"));
        assert_eq!(of("staged"), Dir::Root);
    }
}
