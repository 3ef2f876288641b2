# SPDX-License-Identifier: Apache-2.0
cadre_fuzz(jwt LINKS cadre_identity)
cadre_fuzz(review LINKS cadre_identity)
