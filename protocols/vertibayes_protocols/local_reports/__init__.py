"""Reports under local differential privacy: people perturb their own records, and send the result.

    all                     ReportPlan: classes, states, bounds, bins or projection, questions, eps
    person                  Client(plan).perturb: draws a question, answers it under noise
    person -> aggregator    Reports: the question and the answer, as plain arrays
    aggregator              Aggregator(plan).update: checks, adds up, in any order; merge
                            learn_reports: from the sums to a NaiveBayes

Security: the reports of a person are (eps, 0)-private whatever the person's record is, against
everybody, as `ReportPlan.promise` states. The choice of a question does not depend on the record.
Leakage: who reports, when, and which questions. A person who reports twice spends eps twice.
Nothing protects the aggregator from people who lie.
Cost: one answer per person, or one per question: a few bytes under most oracles.
"""

from vertibayes_protocols.local_reports.aggregator import Aggregator, EstimatedSums
from vertibayes_protocols.local_reports.client import Client
from vertibayes_protocols.local_reports.plan import ReportPlan
from vertibayes_protocols.local_reports.projection import Projection
from vertibayes_protocols.local_reports.reports import Reports

__all__ = ["Aggregator", "Client", "EstimatedSums", "Projection", "ReportPlan", "Reports"]
