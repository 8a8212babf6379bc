"""The built-in analyst: predicts, judges and plans by rules, with no model."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainwarden.procedure.roles import Briefing
    from trainwarden.records.assessment import Assessment, Troubleshooting
    from trainwarden.records.hypothesis import Strategy
    from trainwarden.records.prediction import Prediction


class RulesAnalyst:
    """An `Analyst` made of rules; each step is imported when it is asked for."""

    name = "rules"

    def predict(self, briefing: Briefing) -> tuple[Prediction, ...]:
        """Step 1: intervals from the config, and from the job's own history once there is one."""
        from trainwarden.analysts.rules.predict import predict

        return predict(briefing)

    def assess(self, briefing: Briefing) -> Assessment:
        """Step 4: the status and what it owes."""
        from trainwarden.analysts.rules.assess import assess

        return assess(briefing)

    def resources(self, briefing: Briefing) -> str:
        """Step 5: reasoning on hardware, processes and disks."""
        from trainwarden.analysts.rules.resources import resources

        return resources(briefing)

    def troubleshoot(self, briefing: Briefing) -> Troubleshooting:
        """Step 7: root causes in causal order."""
        from trainwarden.analysts.rules.troubleshoot import troubleshoot

        return troubleshoot(briefing)

    def strategize(self, briefing: Briefing) -> Strategy:
        """Step 8: due hypotheses scored, new ones, a plan, the next moment to look."""
        from trainwarden.analysts.rules.strategize import strategize

        return strategize(briefing)
