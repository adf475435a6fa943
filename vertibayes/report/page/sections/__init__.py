"""What the page says, section by section, as data without HTML."""
