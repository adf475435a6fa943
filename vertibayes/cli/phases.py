"""The phases of a run after its study is open, by the names that its status has."""

STRUCTURE, CPTS, STRENGTHS = "structure", "CPTs", "strengths"
VALIDATION, WRITING = "validation", "writing"
LEARNING, CALIBRATING, PREDICTING = "learning", "calibration", "prediction"
WORK = {  # by what a study learns
    "bayesian_network": (STRUCTURE, CPTS, STRENGTHS),
    "naive_bayes": (LEARNING,),
    "calibration": (CALIBRATING,),
    "prediction": (PREDICTING,),
}
