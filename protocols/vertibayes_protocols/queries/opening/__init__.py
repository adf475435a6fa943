"""How a study is opened: begin a run, meet, describe, commit."""
