"""All parties, their disks, clocks and network in one process, whose faults follow from a seed."""
