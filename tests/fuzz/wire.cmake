# SPDX-License-Identifier: Apache-2.0
cadre_fuzz(record LINKS cadre_wire)
cadre_fuzz(frame LINKS cadre_wire)
cadre_fuzz(safetensors LINKS cadre_wire)
cadre_fuzz(dispatch LINKS cadre_wire)
cadre_fuzz(batch LINKS cadre_wire)
cadre_fuzz(ref LINKS cadre_wire)
cadre_fuzz(share LINKS cadre_wire)
