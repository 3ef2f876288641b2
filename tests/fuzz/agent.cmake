# SPDX-License-Identifier: Apache-2.0
cadre_fuzz(command LINKS cadre_agent)
