"""Operations that are made of child calls."""
