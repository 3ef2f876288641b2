# SPDX-License-Identifier: Apache-2.0
cadre_fuzz(json_grammar LINKS cadre_base)
