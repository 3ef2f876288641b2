# SPDX-License-Identifier: Apache-2.0
cadre_fuzz(jsonrpc LINKS cadre_proxy)
