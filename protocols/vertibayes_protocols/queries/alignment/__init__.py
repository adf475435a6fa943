"""How sites find out who is in a study."""
