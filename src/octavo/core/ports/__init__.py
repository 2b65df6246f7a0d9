"""The interfaces (ports) by which rooms meet: a room offers one of them or needs one."""
