# SPDX-License-Identifier: Apache-2.0
cadre_fuzz(splitter LINKS cadre_kube)
