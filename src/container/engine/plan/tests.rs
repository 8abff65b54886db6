use super::super::found::{FoundNetwork, FoundVolume, Health};
use super::super::wanted::{Origin, WantedNetwork, WantedVolume, wanted};
use super::*;
use crate::container::compose::model::{
    Condition, Dependency, Network, NetworkLink, Port, Project, ProjectName, Protocol, Service, ServiceName,
    Volume,
};
use std::collections::BTreeMap;

/// Two services as in a box: core waits for keys, both on both networks.
fn project(name: &str) -> Project {
    let service = |publishes: bool| Service {
        image: "worca:dev".into(),
        networks: BTreeMap::from([
            ("work".into(), NetworkLink::default()),
            ("out".into(), NetworkLink::default()),
        ]),
        ports: publishes
            .then_some(Port { host_ip: None, published: Some(4317), target: 4317, protocol: Protocol::Tcp })
            .into_iter()
            .collect(),
        ..Service::default()
    };
    let name_of = |text: &str| ServiceName::parse(text).unwrap();
    let mut core = service(true);
    core.depends_on.insert(name_of("keys"), Dependency { condition: Condition::Healthy, restart: false });
    let network =
        |key: &str, internal| Network { name: format!("{name}_{key}"), internal, ..Network::default() };
    Project {
        name: ProjectName::parse(name).unwrap(),
        services: BTreeMap::from([(name_of("core"), core), (name_of("keys"), service(false))]),
        networks: BTreeMap::from([
            ("work".into(), network("work", true)),
            ("out".into(), network("out", false)),
        ]),
        volumes: BTreeMap::from([(
            "data".into(),
            Volume { name: format!("{name}_data"), ..Volume::default() },
        )]),
        secrets: BTreeMap::new(),
    }
}

fn origin() -> Origin {
    Origin { images: BTreeMap::from([("worca:dev".into(), "sha256:1".into())]), ..Origin::default() }
}

fn want(project: &Project) -> Wanted {
    wanted(project, &origin()).unwrap()
}

/// What an engine shows once `wanted` was applied.
fn applied(wanted: &Wanted) -> Found {
    let network_id = |name: &str| format!("id-{name}");
    Found {
        containers: wanted
            .containers
            .iter()
            .map(|one| FoundContainer {
                id: format!("id-{}", one.name),
                name: one.name.clone(),
                ours: true,
                of_box: Some(wanted.project.clone()),
                project: Some(wanted.project.clone()),
                service: one.service.clone(),
                hash: one.hash.clone(),
                number: "1".into(),
                state: State::Running,
                health: Health::Healthy,
                networks: one.networks.iter().map(|name| (name.clone(), network_id(name))).collect(),
                ..FoundContainer::default()
            })
            .collect(),
        networks: wanted
            .networks
            .iter()
            .map(|one: &WantedNetwork| FoundNetwork {
                id: network_id(&one.name),
                name: one.name.clone(),
                ours: true,
                hash: one.hash.clone(),
            })
            .collect(),
        volumes: wanted
            .volumes
            .iter()
            .map(|one: &WantedVolume| FoundVolume {
                name: one.name.clone(),
                ours: true,
                ..FoundVolume::default()
            })
            .collect(),
    }
}

fn remove(name: &str, why: Why) -> Step {
    Step::RemoveContainer { id: format!("id-{name}"), name: name.into(), why }
}

fn container<'a>(found: &'a mut Found, name: &str) -> &'a mut FoundContainer {
    found.containers.iter_mut().find(|one| one.name == name).unwrap()
}

#[test]
fn from_nothing_everything_is_made_in_order_and_keys_start_before_core() {
    let plan = plan(&want(&project("worca")), &Found::default()).unwrap();
    let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let made: Vec<String> = plan.created().map(str::to_owned).collect();
    assert_eq!(made, text(&["worca-keys-1", "worca-core-1"]));
    assert_eq!(plan.started().collect::<Vec<_>>(), ["worca-keys-1", "worca-core-1"]);
    let first_container =
        plan.steps.iter().position(|step| matches!(step, Step::CreateContainer(_))).unwrap();
    let last_network = plan
        .steps
        .iter()
        .rposition(|step| matches!(step, Step::CreateNetwork(_) | Step::CreateVolume(_)))
        .unwrap();
    assert!(last_network < first_container);
}

#[test]
fn what_is_as_wanted_is_left_alone() {
    let wanted = want(&project("worca"));
    assert!(plan(&wanted, &applied(&wanted)).unwrap().is_empty());
}

#[test]
fn the_digest_is_the_same_each_time_and_changes_with_every_part() {
    let base = project("worca");
    let hashes = |project: &Project, origin: &Origin| -> Vec<String> {
        wanted(project, origin).unwrap().containers.into_iter().map(|one| one.hash).collect()
    };
    let before = hashes(&base, &origin());
    assert_eq!(before, hashes(&base, &origin()));
    let mut port = base.clone();
    port.services.get_mut("core").unwrap().ports[0].published = Some(9);
    let after = hashes(&port, &origin());
    assert_eq!((&before[0], before[1] == after[1]), (&after[0], false), "only core changes with its port");
    let image = Origin { images: BTreeMap::from([("worca:dev".into(), "sha256:2".into())]), ..origin() };
    assert!(hashes(&base, &image).iter().zip(&before).all(|(a, b)| a != b));
    let mut files = origin();
    files.config_files.push("/elsewhere/compose.override.yaml".into());
    assert_eq!(hashes(&base, &files), before, "where the files lie is no part of a container");
}

#[test]
fn a_changed_port_recreates_core_and_leaves_keys() {
    let found = applied(&want(&project("worca")));
    let mut changed = project("worca");
    changed.services.get_mut("core").unwrap().ports[0].published = Some(4400);
    let plan = plan(&want(&changed), &found).unwrap();
    let name = "worca-core-1".to_owned();
    assert_eq!(
        plan.steps,
        [remove("worca-core-1", Why::Changed), Step::CreateContainer(name.clone()), Step::Start(name)]
    );
}

#[test]
fn a_half_made_container_is_made_anew_and_a_stopped_one_is_started() {
    let wanted = want(&project("worca"));
    for state in [State::Created, State::Dead] {
        let mut found = applied(&wanted);
        container(&mut found, "worca-keys-1").state = state;
        let plan = plan(&wanted, &found).unwrap();
        assert_eq!(plan.steps[0], remove("worca-keys-1", Why::HalfMade));
        assert_eq!(plan.created().collect::<Vec<_>>(), ["worca-keys-1"]);
    }
    let mut found = applied(&wanted);
    container(&mut found, "worca-keys-1").state = State::Exited;
    assert_eq!(plan(&wanted, &found).unwrap().steps, [Step::Start("worca-keys-1".into())]);
    container(&mut found, "worca-keys-1").state = State::Paused;
    assert_eq!(plan(&wanted, &found).unwrap().steps, [Step::Unpause("worca-keys-1".into())]);
    container(&mut found, "worca-keys-1").state = State::Restarting;
    assert!(plan(&wanted, &found).unwrap().is_empty());
}

#[test]
fn a_lost_network_takes_its_containers_along_and_so_does_a_changed_one() {
    let wanted = want(&project("worca"));
    let mut found = applied(&wanted);
    found.networks.retain(|one| one.name != "worca_work");
    let lost = plan(&wanted, &found).unwrap();
    assert!(lost.steps.contains(&remove("worca-core-1", Why::Network)), "{lost:?}");
    assert!(lost.steps.contains(&Step::CreateNetwork("worca_work".into())));
    let mut other = project("worca");
    other.networks.get_mut("out").unwrap().internal = true;
    let changed = plan(&want(&other), &applied(&wanted)).unwrap();
    let at = |step: &Step| changed.steps.iter().position(|one| one == step).unwrap();
    let gone = Step::RemoveNetwork { id: "id-worca_out".into(), name: "worca_out".into() };
    assert!(at(&remove("worca-keys-1", Why::Network)) < at(&gone));
    assert!(at(&gone) < at(&Step::CreateNetwork("worca_out".into())));
}

#[test]
fn a_network_of_the_same_name_that_was_made_anew_by_hand_takes_its_containers_along() {
    let wanted = want(&project("worca"));
    let mut found = applied(&wanted);
    found.networks.iter_mut().find(|one| one.name == "worca_out").unwrap().id = "another".into();
    assert_eq!(plan(&wanted, &found).unwrap().created().count(), 2);
}

#[test]
fn an_orphan_of_ours_goes_and_a_one_off_stays() {
    let wanted = want(&project("worca"));
    let mut found = applied(&wanted);
    let mut orphan = found.containers[0].clone();
    (orphan.id, orphan.name, orphan.service) = ("id-worca-old-1".into(), "worca-old-1".into(), "old".into());
    let mut login = orphan.clone();
    (login.id, login.name, login.one_off) = ("id-worca-login".into(), "worca-login".into(), true);
    found.containers.extend([orphan, login]);
    assert_eq!(plan(&wanted, &found).unwrap().steps, [remove("worca-old-1", Why::Orphan)]);
}

#[test]
fn c023_nothing_that_is_not_ours_is_ever_part_of_a_step() {
    let wanted = want(&project("worca"));
    let mut found = applied(&wanted);
    for (name, project) in
        [("container-web-1", Some("container")), ("lonely", None), ("worca2-core-1", Some("worca2"))]
    {
        found.containers.push(FoundContainer {
            id: format!("id-{name}"),
            name: name.into(),
            project: project.map(str::to_owned),
            service: "core".into(),
            state: State::Running,
            ports: vec![4317],
            ..FoundContainer::default()
        });
        found.networks.push(FoundNetwork { id: name.into(), name: name.into(), ..FoundNetwork::default() });
    }
    assert!(plan(&wanted, &found).unwrap().is_empty());
}

#[test]
fn a_foreign_thing_with_a_needed_name_is_refused_before_anything_is_done() {
    let wanted = want(&project("worca"));
    let mut found = Found::default();
    found.volumes.push(FoundVolume { name: "worca_data".into(), ..FoundVolume::default() });
    let error = plan(&wanted, &found).unwrap_err();
    assert_eq!(error.to_string(), "volume `worca_data` exists and does not belong to the box `worca`");
    assert!(error.hint().unwrap().contains("--name"));
    let mut found = Found::default();
    found.networks.push(FoundNetwork { name: "worca_out".into(), ..FoundNetwork::default() });
    assert!(matches!(plan(&wanted, &found), Err(PlanError::Foreign { kind: "network", .. })));
    let mut found = Found::default();
    found.containers.push(FoundContainer { name: "worca-core-1".into(), ..FoundContainer::default() });
    assert!(matches!(plan(&wanted, &found), Err(PlanError::Foreign { kind: "container", .. })));
    found.containers[0] = FoundContainer {
        name: "worca-web-1".into(),
        project: Some("worca".into()),
        ..FoundContainer::default()
    };
    assert!(matches!(plan(&wanted, &found), Err(PlanError::ForeignProject { .. })));
}

#[test]
fn something_external_is_used_and_never_made() {
    let mut project = project("worca");
    project.networks.get_mut("out").unwrap().external = true;
    project.networks.get_mut("out").unwrap().name = "shared".into();
    let wanted = want(&project);
    assert!(matches!(plan(&wanted, &Found::default()), Err(PlanError::NoExternal { kind: "network", .. })));
    let mut found = Found::default();
    found.networks.push(FoundNetwork { id: "x".into(), name: "shared".into(), ..FoundNetwork::default() });
    assert!(!plan(&wanted, &found).unwrap().steps.contains(&Step::CreateNetwork("shared".into())));
}
