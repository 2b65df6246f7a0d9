"""The seams. A room offers or needs one of these; nothing else crosses a wall."""
