# SPDX-License-Identifier: Apache-2.0
cadre_fuzz(agents LINKS cadre_agents)
cadre_fuzz(replica_reports LINKS cadre_agents)
cadre_fuzz(printed LINKS cadre_agents)
