# SPDX-License-Identifier: Apache-2.0
foreach(name draft glance json_table quantity resource object pod pod_requests pod_constraints node
             workergroup launch podtemplate bundle api_status api_documents)
  cadre_test(test_${name} LINKS cadre_api)
endforeach()
cadre_test(test_golden_decode LINKS cadre_api SOURCES golden.c)
cadre_test(test_golden_render LINKS cadre_api SOURCES golden.c)
set_tests_properties(test_golden_decode test_golden_render PROPERTIES LABELS "unit;golden")
# cJSON is the independent peer of our reader.
cadre_test(test_json_peer LINKS cadre_api PkgConfig::libcjson)
# The schemas in crds/ against the tables of the decoders, and against what is refused as not supported.
cadre_test(test_crd LINKS cadre_reconcile PkgConfig::libyaml)
