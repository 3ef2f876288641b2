# SPDX-License-Identifier: Apache-2.0
foreach(name agents agents_attempt)
  cadre_test(test_${name} SOURCES agents_fixture.c LINKS cadre_agents)
endforeach()
cadre_test(test_sightings LINKS cadre_agents)
cadre_test(test_agents_protocol LINKS cadre_agents cadre_agent)
