"""The prefixes that servers of ours, and servers like them, are mounted under wherever they are."""

from plait.routing.naming import MountPrefix

RESOURCES_MOUNT_PREFIX = MountPrefix("resources")
"""The resources of every mounted server, as tools."""
COMPOSITOR_META_MOUNT_PREFIX = MountPrefix("compositor_meta")
"""What is mounted, and how each server is."""
COMPOSITOR_ADMIN_MOUNT_PREFIX = MountPrefix("compositor_admin")
"""Mounting and unmounting, for an agent that may."""
DELEGATE_MOUNT_PREFIX = MountPrefix("delegate")
"""Handing a task on."""
RUNTIME_MOUNT_PREFIX = MountPrefix("runtime")
"""Where an agent runs its programs."""
POLICY_READER_MOUNT_PREFIX = MountPrefix("policy_reader")
POLICY_PROPOSER_MOUNT_PREFIX = MountPrefix("policy_proposer")
SEATBELT_EXEC_MOUNT_PREFIX = MountPrefix("seatbelt_exec")
