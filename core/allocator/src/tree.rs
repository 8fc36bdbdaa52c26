//! The role tree: roles, frameworks in them, and who of them can be offered something.
//!
//! `booking` keeps what each of them holds, `ranking` puts them in order, `quota` says what a role must and may have.
//! A role is in the tree while it has child roles, frameworks, reservations or a quota.
//!
//! Fed by the allocator. Never: agents' resources, filters.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_fsm::Rng;
use tepui_resources::{Name, Quantities, Resources, Role};

use crate::booking::{Counted, Tally};
use crate::constraints::Group;
use crate::order::{Key, Order};
use crate::quota::Claims;
use crate::share::Weight;
use crate::slab::{AgentSlot, ClientSlot, FrameworkSlot, NodeSlot, Slab, Slot};
use crate::{FrameworkCapabilities, MinAllocatable};

#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Slab<NodeSlot, Node>,
    pub(crate) clients: Slab<ClientSlot, Client>,
    by_role: BTreeMap<Role, NodeSlot>,
    by_pair: BTreeMap<(FrameworkSlot, NodeSlot), ClientSlot>,
    pub(crate) root: NodeSlot,
    weights: BTreeMap<Role, Weight>,
    pub(crate) excluded: Vec<Name>,
    /// What shares are fractions of.
    pub(crate) totals: Quantities,
    /// Shared resources by who holds them where: each counts once.
    pub(crate) shared: BTreeMap<(Counted, AgentSlot), Resources>,
    /// Clients whose holdings changed since the order was settled.
    pub(crate) touched: Vec<ClientSlot>,
    /// Every share must be computed again.
    pub(crate) stale: bool,
    /// Free, unreserved and not revocable, on agents that can be offered: what guarantees can be met from.
    pub(crate) available: Quantities,
    /// Roles that quota kept something from and that may have more now.
    pub(crate) eased: Vec<NodeSlot>,
    rng: Rng,
}

/// A role.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) role: Role,
    pub(crate) parent: Option<NodeSlot>,
    /// Child roles, clients, reservations, quota: without any, the node goes.
    uses: u32,
    pub(crate) weight: Weight,
    pub(crate) claims: Claims,
    /// Held by its own frameworks, and by all of its subtree.
    pub(crate) own: Tally,
    pub(crate) subtree: Tally,
    /// Clients in order in the subtree.
    pub(crate) active: u32,
    pub(crate) children: Order<Child>,
    pub(crate) clients: Order<ClientSlot>,
    pub(crate) key: Key,
    pub(crate) own_key: Key,
    /// The last run in which something of the subtree was fresh.
    fresh_run: u64,
}

/// What competes for the share of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    /// The role's own frameworks.
    Own,
    Role(NodeSlot),
}

/// A framework in one role: subscribed, or at least holding something there.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) framework: FrameworkSlot,
    pub(crate) node: NodeSlot,
    pub(crate) held: Tally,
    pub(crate) subscribed: bool,
    /// May be offered something: in the order.
    pub(crate) active: bool,
    pub(crate) wishes: Wishes,
    pub(crate) key: Key,
    pub(crate) touched: bool,
    fresh_run: u64,
}

/// What a framework in a role can and will take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) capabilities: FrameworkCapabilities,
    pub(crate) groups: Option<Arc<[Group]>>,
    pub(crate) min_allocatable: Option<MinAllocatable>,
}

impl Tree {
    pub(crate) fn new(excluded: Vec<Name>, seed: u64) -> Self {
        let mut rng = Rng::seeded(seed);
        let mut nodes = Slab::new();
        let root = nodes.insert(Node::new(Role::new(""), None, Weight::ONE, &mut rng));
        Self {
            nodes,
            clients: Slab::new(),
            by_role: BTreeMap::new(),
            by_pair: BTreeMap::new(),
            root,
            weights: BTreeMap::new(),
            excluded,
            totals: Quantities::new(),
            shared: BTreeMap::new(),
            touched: Vec::new(),
            stale: false,
            available: Quantities::new(),
            eased: Vec::new(),
            rng,
        }
    }

    pub(crate) fn client(&self, framework: FrameworkSlot, role: &Role) -> Option<ClientSlot> {
        self.by_pair.get(&(framework, *self.by_role.get(role)?)).copied()
    }

    pub(crate) fn clients_of(&self, framework: FrameworkSlot) -> Vec<ClientSlot> {
        let all = (framework, NodeSlot::new(0))..=(framework, NodeSlot::new(u32::MAX));
        self.by_pair.range(all).map(|(_, client)| *client).collect()
    }

    pub(crate) fn role_of(&self, client: ClientSlot) -> &Role {
        &self.nodes[self.clients[client].node].role
    }

    pub(crate) fn ensure_client(&mut self, framework: FrameworkSlot, role: &Role) -> ClientSlot {
        let node = self.ensure_node(role);
        if let Some(client) = self.by_pair.get(&(framework, node)) {
            return *client;
        }
        self.nodes[node].uses += 1;
        let client = self.clients.insert(Client::new(framework, node, &mut self.rng));
        self.by_pair.insert((framework, node), client);
        client
    }

    /// Forgets a client that is not subscribed and holds nothing, and roles that nobody uses then. True if it went.
    pub(crate) fn drop_if_unused(&mut self, slot: ClientSlot) -> bool {
        let client = &self.clients[slot];
        let unused = !client.subscribed && client.held.amount.is_empty();
        if unused {
            // Its role's place in the order must follow what it gave back.
            self.settle_order();
            self.set_active(slot, false);
            let client = self.clients.remove(slot);
            self.by_pair.remove(&(client.framework, client.node));
            self.drop_use(client.node);
        }
        unused
    }

    pub(crate) fn add_use(&mut self, slot: NodeSlot) {
        self.nodes[slot].uses += 1;
    }

    pub(crate) fn drop_use(&mut self, slot: NodeSlot) {
        let node = &mut self.nodes[slot];
        node.uses -= 1;
        if node.uses == 0
            && let Some(parent) = node.parent
        {
            let node = self.nodes.remove(slot);
            self.by_role.remove(&node.role);
            self.eased.retain(|eased| *eased != slot);
            self.drop_use(parent);
        }
    }

    pub(crate) fn node(&self, role: &Role) -> Option<NodeSlot> {
        self.by_role.get(role).copied()
    }

    /// A node without uses: the caller adds one.
    pub(crate) fn ensure_node(&mut self, role: &Role) -> NodeSlot {
        if let Some(node) = self.by_role.get(role) {
            return *node;
        }
        let parent = role.ancestors().next().map(Role::from);
        let parent = parent.map_or(self.root, |parent| self.ensure_node(&parent));
        self.nodes[parent].uses += 1;
        let weight = self.weights.get(role).copied().unwrap_or(Weight::ONE);
        let node = self.nodes.insert(Node::new(role.clone(), Some(parent), weight, &mut self.rng));
        self.by_role.insert(role.clone(), node);
        node
    }

    /// Puts a client into the order, or takes it out.
    pub(crate) fn set_active(&mut self, slot: ClientSlot, active: bool) {
        if self.clients[slot].active == active {
            return;
        }
        self.settle_order();
        self.clients[slot].active = active;
        let (key, at) = (self.clients[slot].key, self.clients[slot].node);
        let node = &mut self.nodes[at];
        match active {
            true => node.clients.insert(key, slot),
            false => node.clients.remove(key, slot),
        }
        match (active, node.clients.len()) {
            (true, 1) => node.children.insert(node.own_key, Child::Own),
            (false, 0) => node.children.remove(node.own_key, Child::Own),
            (true | false, _) => (),
        }
        self.count_active(at, active);
    }

    fn count_active(&mut self, at: NodeSlot, active: bool) {
        let node = &mut self.nodes[at];
        node.active = if active { node.active + 1 } else { node.active - 1 };
        let (count, key) = (node.active, node.key);
        let Some(parent) = node.parent else { return };
        match (active, count) {
            (true, 1) => self.nodes[parent].children.insert(key, Child::Role(at)),
            (false, 0) => self.nodes[parent].children.remove(key, Child::Role(at)),
            (true | false, _) => (),
        }
        self.count_active(parent, active);
    }

    /// The clients in order at or below a node.
    pub(crate) fn active_clients_below(&self, at: NodeSlot, out: &mut Vec<ClientSlot>) {
        let node = &self.nodes[at];
        out.extend(node.clients.iter().map(|(_, client)| client));
        for (_, child) in node.children.iter() {
            match child {
                Child::Own => (),
                Child::Role(role) => self.active_clients_below(role, out),
            }
        }
    }

    /// Says that nothing but this client changed for the agents that are looked at in `run`.
    pub(crate) fn mark_fresh(&mut self, client: ClientSlot, run: u64) {
        self.clients[client].fresh_run = run;
        let mut next = Some(self.clients[client].node);
        while let Some(at) = next {
            self.nodes[at].fresh_run = run;
            next = self.nodes[at].parent;
        }
    }

    pub(crate) fn set_weights(&mut self, weights: &BTreeMap<Role, f64>) {
        for (role, weight) in weights {
            let weight = Weight::from_f64(*weight);
            self.weights.insert(role.clone(), weight);
            if let Some(node) = self.node(role) {
                self.nodes[node].weight = weight;
                self.stale = true;
            }
        }
    }

    pub(crate) fn change_totals(&mut self, less: &Quantities, more: &Quantities) {
        if less != more {
            self.totals += more;
            self.totals -= less;
            self.stale = true;
        }
    }
}

impl Node {
    fn new(role: Role, parent: Option<NodeSlot>, weight: Weight, rng: &mut Rng) -> Self {
        Self {
            role,
            parent,
            uses: 0,
            weight,
            claims: Claims::default(),
            own: Tally::default(),
            subtree: Tally::default(),
            active: 0,
            children: Order::default(),
            clients: Order::default(),
            key: Key::drawn(rng),
            own_key: Key::drawn(rng),
            fresh_run: 0,
        }
    }

    pub(crate) fn is_fresh(&self, run: u64) -> bool {
        self.fresh_run == run
    }
}

impl Client {
    fn new(framework: FrameworkSlot, node: NodeSlot, rng: &mut Rng) -> Self {
        Self {
            framework,
            node,
            held: Tally::default(),
            subscribed: false,
            active: false,
            wishes: Wishes::default(),
            key: Key::drawn(rng),
            touched: false,
            fresh_run: 0,
        }
    }

    pub(crate) fn is_fresh(&self, run: u64) -> bool {
        self.fresh_run == run
    }
}
