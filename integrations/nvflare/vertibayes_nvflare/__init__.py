"""A job of NVIDIA FLARE that runs the parties of a study: a controller and an executor.

    server    StudyController   starts the relay if it has one, dealer and sites; waits
    client    PartyExecutor     runs the client's own party, a process, and returns a report

The parties speak through the study's relay, never through FLARE's messages, which carry the digest
of the study, a time, and reports.
"""
