# SPDX-License-Identifier: Apache-2.0
foreach(name base64 ticket)
  cadre_test(test_${name} LINKS cadre_identity)
endforeach()
foreach(name jwks jwt)
  cadre_test(test_${name} LINKS cadre_identity SOURCES issuer.c)
endforeach()
foreach(name certificate keys)
  cadre_test(test_${name} LINKS cadre_identity cadre_fakeapi)
endforeach()
# These speak to a stub instead of the client: the linker takes the first definition it meets.
cadre_test(test_access LINKS cadre_identity SOURCES stub_client.c issuer.c)
cadre_test(test_vault LINKS cadre_identity SOURCES stub_client.c)
cadre_test(test_keyring LINKS cadre_identity SOURCES stub_client.c issuer.c)
# And this one to a server over sockets.
cadre_test(test_identity LINKS cadre_identity cadre_fakeapi SOURCES kube_fixture.c issuer.c)
