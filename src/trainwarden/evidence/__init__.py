"""The sources: logs, GPUs, processes, disks, the host, to observations."""
