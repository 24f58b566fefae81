"""Getting models: from the package index, from a Hub repository, from a path, from other programs' stores."""
