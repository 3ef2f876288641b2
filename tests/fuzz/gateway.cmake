# SPDX-License-Identifier: Apache-2.0
cadre_fuzz(hello LINKS cadre_gateway)
