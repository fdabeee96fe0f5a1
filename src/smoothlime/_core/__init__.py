"""Words and checks that all rooms use: types, arrays, validation, optional libraries, progress, the version."""
