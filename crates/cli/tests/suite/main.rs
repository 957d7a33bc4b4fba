//! The integration tests of the command. They form one program, with a module for each subject,
//! because each further program would have to link the engine again.
//!
//! `cargo test -p httphaul-cli --test suite output_files` runs one module.

#[path = "../common/mod.rs"]
mod common;

mod agent_with_curl_options;
mod apt_method;
mod authentication;
mod background_agent;
mod bodies_of_url_lists;
mod certificate_status;
mod certificate_verification;
mod client_certificates;
mod connection_endpoints;
mod curl_compat_auth;
mod curl_compat_cookies;
mod curl_compat_forms;
mod curl_compat_messages;
mod curl_compat_options;
mod curl_compat_output_files;
mod curl_compat_proxies;
mod curl_compat_requests;
mod curl_compat_responses;
mod curl_compat_retries;
mod curl_compat_uploads;
mod curl_compat_urls;
mod curl_compat_write_out;
mod curl_scripts;
mod descriptor_limit;
mod differential;
mod dns;
mod doctor_report;
mod documentation_pictures;
mod encrypted_client_hello;
mod error_messages;
mod events;
mod extraction;
mod failures;
mod file_urls;
mod guide_block_coverage;
mod guides;
mod heads_and_write_out;
mod http2_servers;
mod http2_testkit_servers;
#[cfg(feature = "http3")]
mod http3;
#[cfg(feature = "http3")]
mod http3_servers;
#[cfg(feature = "job")]
mod job_directory_trust;
#[cfg(feature = "job")]
mod job_disk_faults;
#[cfg(feature = "job")]
mod job_kills;
#[cfg(feature = "job")]
mod job_lists;
#[cfg(feature = "job")]
mod job_memory;
#[cfg(feature = "job")]
mod job_options;
#[cfg(feature = "job")]
mod job_refresh;
#[cfg(feature = "job")]
mod job_report_html;
#[cfg(feature = "job")]
mod job_stages;
#[cfg(all(feature = "job", feature = "warc"))]
mod job_warc;
#[cfg(feature = "job")]
mod jobs;
mod jsonl_input;
mod jsonl_output;
#[cfg(feature = "job")]
mod later_stage_credentials;
mod message_signatures;
mod name_templates;
mod negotiate_without_kerberos;
mod openbsd_ftp;
mod option_effects;
mod other_users;
mod output_files;
mod own_files_as_outputs;
mod package_manager_commands;
mod package_managers;
mod pagination;
mod parallel_groups;
mod pinning_and_revocation;
mod proxy_servers;
mod rate_and_stall_limits;
mod redirects;
mod request_bodies;
mod retries;
mod safe_file_names_and_terminal_text;
mod same_options_for_one_and_two_urls;
mod selection;
mod servers;
mod shards;
mod split_and_resumed_downloads;
mod state_files;
mod stats;
mod syscall_and_instruction_counts;
mod system_faults;
mod table_input;
mod terminal_sessions;
mod value_output;
mod verbose_and_trace;
mod wall_clock;
#[cfg(feature = "warc")]
mod warc;
mod xargs_and_config_recipes;
mod zero_copy;
