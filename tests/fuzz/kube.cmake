# SPDX-License-Identifier: Apache-2.0
cadre_fuzz(stream LINKS cadre_kube)
