"""The eight folds that every request passes, always the same, always in this order."""
