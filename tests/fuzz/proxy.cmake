# SPDX-License-Identifier: Apache-2.0
cadre_fuzz(jsonrpc LINKS cadre_proxy)
cadre_fuzz(modes LINKS cadre_proxy)
cadre_fuzz(session LINKS cadre_proxy)
