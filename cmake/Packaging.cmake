# Installs files by the Filesystem Hierarchy Standard (`cmake --install`). CPack makes a Debian package of them (./dev
# package).
include(GNUInstallDirs)

# The systemd unit and the configuration contain paths below /usr and /etc. Replaces these paths if weir is installed
# under another prefix.
foreach(file weir.service weir.toml)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/packaging/${file})
  file(READ ${PROJECT_SOURCE_DIR}/packaging/${file} text)
  string(REPLACE "/usr/bin/weir" "${CMAKE_INSTALL_FULL_BINDIR}/weir" text "${text}")
  string(REPLACE "/usr/share/" "${CMAKE_INSTALL_FULL_DATADIR}/" text "${text}")
  string(REPLACE "/etc/weir" "${CMAKE_INSTALL_FULL_SYSCONFDIR}/weir" text "${text}")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/packaging/${file} CONTENT "${text}" @ONLY)
endforeach()

# Debian requires compressed manual pages and changelogs. gzip -n omits time stamps, so that builds are reproducible.
set(compressed)
foreach(file man/weir.8 man/weir.toml.5 debian/changelog)
  get_filename_component(name ${file} NAME)
  set(output ${PROJECT_BINARY_DIR}/packaging/${name}.gz)
  add_custom_command(OUTPUT ${output} COMMAND gzip -9 -n -c ${PROJECT_SOURCE_DIR}/packaging/${file} > ${output}
    DEPENDS ${PROJECT_SOURCE_DIR}/packaging/${file})
  list(APPEND compressed ${output})
endforeach()
add_custom_target(weir_pages ALL DEPENDS ${compressed})

install(TARGETS weir RUNTIME)
install(FILES ${PROJECT_BINARY_DIR}/packaging/weir.toml DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/weir)
install(FILES packaging/weir.logrotate DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/logrotate.d RENAME weir)
install(FILES ${PROJECT_BINARY_DIR}/packaging/weir.service DESTINATION lib/systemd/system)
install(FILES config/weir.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/weir)
install(FILES ${PROJECT_BINARY_DIR}/packaging/weir.8.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)
install(FILES ${PROJECT_BINARY_DIR}/packaging/weir.toml.5.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
install(FILES packaging/completions/weir.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME weir)
install(FILES packaging/completions/weir.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES packaging/completions/_weir DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES config/weir.toml DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(DIRECTORY config/examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES packaging/debian/copyright ${PROJECT_BINARY_DIR}/packaging/changelog.gz DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weir)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "weir's maintainers <maintainers@users.noreply.a-seed-c81a2a22.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "reverse proxy that decides how many requests pass")
set(CPACK_PACKAGE_DESCRIPTION "weir terminates TLS, finds out who is asking (API key, address, user), checks
every rule that applies, all or nothing, and then forwards the request, holds
it in a queue until its turn, or answers 429 with a Retry-After that is never
early. Limits are kept in the process or in Redis, where several weirs are one
limiter.")
set(CPACK_SET_DESTDIR ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "adduser, init-system-helpers (>= 1.54~), tzdata")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates, logrotate")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "redis-server")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
foreach(file conffiles postinst prerm postrm)
  list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/debian/${file})
endforeach()
include(CPack)
