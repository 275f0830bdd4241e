#include "cli/import/import_command.hpp"

#include "cli/exit_status.hpp"
#include "cli/import/syntax/nginx_files.hpp"
#include "cli/import/translate.hpp"

#include "weir/config/config_errors.hpp"
#include "weir/config/settings.hpp"
#include "weir/net/file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>

namespace weir::cli {

namespace {

int fail(const std::string& what, int status) {
  std::cerr << "weir: " << what << '\n';
  return status;
}

// Writes the file. An existing file is overwritten only with --force.
int write_output(const ImportOptions& options, const std::string& text) {
  std::FILE* file = std::fopen(options.output.c_str(), options.force ? "w" : "wx");
  if (file == nullptr && errno == EEXIST)
    return fail(options.output + " exists already; write --force to overwrite it", kFailed);
  if (file == nullptr) return fail("cannot write " + options.output + ": " + std::strerror(errno), kFailed);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  return written && closed ? kDone
                           : fail("cannot write " + options.output + ": " + std::strerror(errno), kFailed);
}

int print(const std::string& text) {
  std::cout << text << std::flush;
  return std::cout ? kDone : fail("standard output cannot be written", kFailed);
}

// Checks the translated configuration as weir check does, and prints its mistakes. Does not check whether the
// files that it names exist.
int check_result(const std::string& text, const std::string& name) {
  try {
    (void)config::parse_settings(text, name);
    return kDone;
  } catch (const config::ConfigError& error) {
    for (const auto& mistake : error.mistakes()) std::cerr << mistake << '\n';
    return fail("the configuration needs these changes before weir accepts it", kFailed);
  }
}

bool is_ingress_file(const std::string& file) {
  return file.ends_with(".yaml") || file.ends_with(".yml") || file.ends_with(".json");
}

base::Result<std::string> translate_ingress_file(const std::string& file, nginx::Notes& notes) {
  constexpr std::size_t kLargestYaml = 16 << 20;
  const auto text = net::read_file(file, kLargestYaml);
  if (!text) return base::Error{"cannot be read: " + text.error().message};
  return nginx::translate_ingresses(*text, file, notes);
}

base::Result<std::string> translate_nginx_file(const std::string& file, nginx::Notes& notes) {
  const auto directives = nginx::read_nginx_files(file);
  if (!directives) return directives.error();
  const auto folder = std::filesystem::absolute(file).parent_path().string();
  return nginx::translate(*directives, folder, notes);
}

}  // namespace

int run_import(const ImportOptions& options) {
  nginx::Notes notes;
  const auto body = is_ingress_file(options.file) ? translate_ingress_file(options.file, notes)
                                                  : translate_nginx_file(options.file, notes);
  for (const auto& note : notes.sorted()) std::cerr << note.line() << '\n';
  if (!body) {
    const auto& what = body.error().message;
    const int status = fail(what.starts_with(options.file) ? what : options.file + ": " + what, kWrong);
    if (!options.file.ends_with(".conf"))
      std::cerr
          << "weir import reads configurations of nginx, and Ingresses in .yaml or .json; docs/guides has "
             "pages for HAProxy, Envoy and Traefik\n";
    return status;
  }
  const auto text = "# Made by weir import from " + nginx::printable(options.file) +
                    ". Its report on standard error names what has no equal.\n" + *body;
  const auto written = options.output.empty() ? print(text) : write_output(options, text);
  if (written != kDone) return written;
  return check_result(text, options.output.empty() ? "weir.toml" : options.output);
}

}  // namespace weir::cli
