# SPDX-License-Identifier: Apache-2.0
cadre_fuzz(object LINKS cadre_api)
cadre_fuzz(draft LINKS cadre_api)
