"""A job of NVIDIA FLARE that runs the parties of a study: a controller, an executor, a courier.

server    StudyController   starts sites and dealer, then the analyst; keeps their reports
client    PartyExecutor     runs the client's own party, a process, and returns a report
          Courier           carries the party's sealed packets over FLARE's messages
"""
