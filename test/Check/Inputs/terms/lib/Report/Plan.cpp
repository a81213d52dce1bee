// A rival is welcome here, but not the first cache.
